"""Names and their implementations."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sparsecast.errors import InputError, UnknownNameError
from sparsecast.system.registry import Registry


@pytest.fixture
def shapes(tmp_path, monkeypatch):
    folder = tmp_path / "shapes_for_this_test"
    folder.mkdir()
    (folder / "__init__.py").write_text(
        "from sparsecast.system.registry import Registry\n"
        "SHAPES = Registry('shape', 'shapes_for_this_test', helpers=('base', 'tools'))\n"
    )
    for name in ("base", "tools", "broken"):
        (folder / f"{name}.py").write_text(f"raise RuntimeError('{name} was imported')\n")
    for name in ("square", "circle"):
        text = f"from shapes_for_this_test import SHAPES\nSHAPES.register('{name}')('a {name}')\n"
        (folder / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    import shapes_for_this_test

    yield shapes_for_this_test.SHAPES
    for module in [name for name in sys.modules if name.startswith("shapes_for_this_test")]:
        del sys.modules[module]


def test_names_are_the_files_and_none_is_imported(shapes):
    assert shapes.names() == ["broken", "circle", "square"]
    assert not {"shapes_for_this_test.circle", "shapes_for_this_test.square"} & set(sys.modules)


def test_get_imports_only_what_is_asked_for(shapes):
    assert shapes.get("circle") == "a circle"
    assert "shapes_for_this_test.square" not in sys.modules
    assert shapes.get("circle") == "a circle"


def test_a_failing_module_fails_when_it_is_asked_for(shapes):
    with pytest.raises(RuntimeError, match="broken was imported"):
        shapes.get("broken")


@pytest.mark.parametrize("name", ("triangle", "base", "tools", "", "square.x", "../square"))
def test_an_unknown_name_lists_the_known_ones_in_one_line(shapes, name):
    with pytest.raises(UnknownNameError) as error:
        shapes.get(name)
    message = str(error.value)
    remedy = "did you mean 'square'?" if "square" in name else "name one"
    assert message == f"shape '{name}' is unknown: known are broken, circle, square; {remedy}"
    assert isinstance(error.value, InputError)


def test_a_second_implementation_of_a_name_is_refused(shapes):
    shapes.register("oval")("an oval")
    with pytest.raises(ValueError, match="oval"):
        shapes.register("oval")("another")
    assert shapes.get("oval") == "an oval"
    assert shapes.names() == ["broken", "circle", "oval", "square"]


def test_register_returns_what_it_enters():
    registry = Registry("thing", "sparsecast.formats")
    thing = object()
    assert registry.register("thing")(thing) is thing


@pytest.mark.parametrize(
    "package, attribute",
    [
        ("sparsecast.formats", "FORMATS"),
        ("sparsecast.devices", "DEVICES"),
        ("sparsecast.devices.cpu.kernels", "KERNELS"),
    ],
)
def test_names_of_the_real_registries_import_no_implementation(package, attribute):
    script = (
        f"import sys; import {package} as package\n"
        "before = set(sys.modules)\n"
        f"names = package.{attribute}.names()\n"
        "assert names\n"
        "own = {name for name in set(sys.modules) - before if name.startswith('sparsecast')}\n"
        "assert not own, own\n"
        "assert not [name for name in sys.modules if name.startswith('sparsecast') "
        "and name.rpartition('.')[2] in names], 'imported'\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
