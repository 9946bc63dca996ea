"""Threads as ranks, and the cases that real ranks do as well."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


def module(path):
    """Return a module of the tests by its path: tests are not a package."""
    name = f"sparsecast_tests_{path.stem}"
    if name not in sys.modules:
        specification = importlib.util.spec_from_file_location(name, path)
        sys.modules[name] = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(sys.modules[name])
    return sys.modules[name]


@pytest.fixture(scope="session")
def simulated():
    """The simulated communicator."""
    return module(TESTS / "distributed" / "simulated.py")


@pytest.fixture(scope="session")
def cases():
    """What products must do on any communicator."""
    return module(TESTS / "mpi" / "cases.py")


@pytest.fixture(scope="session")
def files(tmp_path_factory, cases):
    """A folder with matrix files."""
    folder = tmp_path_factory.mktemp("matrices")
    cases.write_files(folder)
    return folder
