"""Names and their implementations."""

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
def test_an_unknown_name_is_refused_and_one_that_is_meant_suggested(shapes, name):
    with pytest.raises(UnknownNameError) as error:
        shapes.get(name)
    assert isinstance(error.value, InputError) and "broken, circle, square" in str(error.value)
    assert ("did you mean 'square'?" in str(error.value)) == ("square" in name)


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


def test_names_of_the_real_registries_import_no_implementation():
    script = (
        "import sys\n"
        "from sparsecast.devices import DEVICES\n"
        "from sparsecast.devices.cpu.kernels import KERNELS\n"
        "from sparsecast.formats import FORMATS\n"
        "before = set(sys.modules)\n"
        "names = {name for registry in (DEVICES, KERNELS, FORMATS) for name in registry.names()}\n"
        "assert names\n"
        "own = {name for name in set(sys.modules) - before if name.startswith('sparsecast')}\n"
        "assert not own, own\n"
        "found = [name for name in sys.modules if name.startswith('sparsecast')]\n"
        "packages = {'sparsecast.devices.cpu'}  # in which the kernels are\n"
        "found = [name for name in found if name.rpartition('.')[2] in names and name not in packages]\n"
        "assert not found, found\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
