"""A plug-in that takes a name that is taken is an error that names both."""

from __future__ import annotations

import pytest

PROJECT = """[project]
name = "{name}"
version = "1.0"
[project.entry-points."sparsecast.{room}"]
{member} = "{module}"
"""


@pytest.fixture
def plug(install, tmp_path):
    """Install a distribution with one member of a room."""

    def make(name, member, text="raise RuntimeError('is not imported')", module=None, room="formats"):
        folder = tmp_path / name
        folder.mkdir()
        module = module or f"{name}_module"
        (folder / "pyproject.toml").write_text(
            PROJECT.format(name=name, room=room, member=member, module=module)
        )
        (folder / f"{name}_module.py").write_text(text)
        install(folder)

    return make


def complaint(sparsecast):
    done = sparsecast("measure", "gallery:poisson2d?n=5", "--no-keep")
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def test_of_a_format_of_ours(plug, sparsecast):
    plug("mine", "csr")
    assert (
        "format 'csr' of mine (mine_module): expected a name that is not taken, but "
        "sparsecast.formats.csr has it; remove that distribution"
    ) in complaint(sparsecast)


def test_of_another_plug_in(plug, sparsecast):
    plug("mine", "mine")
    plug("yours", "mine")
    found = complaint(sparsecast)
    assert "mine (mine_module)" in found and "yours (yours_module)" in found and "format 'mine' of" in found


@pytest.mark.parametrize(
    "text, module, expected",
    [
        ("", "nowhere", "model 'mine': expected its module nowhere, which cannot be imported"),
        ("", None, "model 'mine': expected mine_module to register that name, it did not"),
    ],
)
def test_a_plug_in_that_is_broken_is_named(plug, sparsecast, text, module, expected):
    plug("mine", "mine", text, module, room="models")
    done = sparsecast("predict", "gallery:poisson2d?n=5", "--model", "mine")
    assert done.returncode == 2 and expected in done.stderr, done.stderr
