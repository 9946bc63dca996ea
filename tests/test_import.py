"""Importing the package costs next to nothing, and its public names are there."""

import json
import pkgutil
import subprocess
import sys

import pytest

import sparsecast as sc
from sparsecast import api

HEAVY = ("numba", "scipy", "numpy", "pyarrow", "typer", "rich", "pandas", "vl_convert", "torch")


def modules_after(statement):
    code = f"import sys, json; {statement}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_what_travels_is_as_light():
    assert modules_after("from sparsecast import Record, Structure").isdisjoint(HEAVY)


def test_the_command_line_shows_its_help_without_numba_and_pandas():
    shown = "from sparsecast.cli.main import _status; sys.argv = ['sparsecast', '--version']; _status()"
    assert modules_after(shown).isdisjoint({"numba", "scipy", "numpy", "pandas", "pyarrow", "torch"})


def test_every_public_name_is_there_and_they_are_sorted():
    assert list(sc.__all__) == sorted(set(sc.__all__)) and set(sc.__all__) <= set(dir(sc))
    for name in sc.__all__:
        assert getattr(sc, name) is getattr(sc, name)


def test_another_name_is_missing_as_in_any_module():
    with pytest.raises(AttributeError):
        sc.nope  # noqa: B018


def test_no_function_of_the_api_has_the_name_of_a_module_there():
    # Once such a module is imported, it stands in the place of the function.
    assert {info.name for info in pkgutil.iter_modules(api.__path__)}.isdisjoint(api.__all__)
