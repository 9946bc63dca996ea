"""A plug-in that takes a name that is taken is an error that names both."""

import pytest

from sparsecast.errors import PluginError
from sparsecast.formats import FORMATS
from sparsecast.models import MODELS
from sparsecast.system.registry import Registry

PROJECT = """[project]
name = "{name}"
version = "1.0"
[project.entry-points."sparsecast.{room}"]
{member} = "{module}"
"""


@pytest.fixture
def plug(install, tmp_path, monkeypatch):
    """Install a distribution with one member of a room, for processes and for this one."""

    def make(name, member, text="raise RuntimeError('is not imported')", module=None, room="formats"):
        folder = tmp_path / name
        folder.mkdir()
        module = module or f"{name}_module"
        (folder / "pyproject.toml").write_text(
            PROJECT.format(name=name, room=room, member=member, module=module)
        )
        (folder / f"{name}_module.py").write_text(text)
        install(folder)
        for path in (folder, tmp_path / "site"):
            monkeypatch.syspath_prepend(path)

    return make


def anew(registry):
    """Return a registry that looks again at what is installed."""
    return Registry(registry.kind, registry._package, registry._helpers)


def test_of_a_format_of_ours(plug):
    plug("mine", "csr")
    with pytest.raises(PluginError, match=r"'csr' of mine \(mine_module\)") as refused:
        anew(FORMATS).names()
    assert "sparsecast.formats.csr" in str(refused.value)


def test_of_another_plug_in(plug):
    plug("mine", "mine")
    plug("yours", "mine")
    with pytest.raises(PluginError, match=r"(mine|yours)_module.*(mine|yours)_module"):
        anew(FORMATS).names()


@pytest.mark.parametrize("module", ["nowhere", "broken_module"])
def test_a_plug_in_that_is_broken_is_named(plug, module):
    plug("broken", "mine", "", module, room="models")
    with pytest.raises(PluginError, match=f"'mine': expected .*{module}"):
        anew(MODELS).get("mine")
