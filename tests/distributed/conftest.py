"""Threads as ranks, and files for the cases that real ranks do as well."""

import pytest

from ..mpi.cases import write_files
from . import simulated as threads


@pytest.fixture(scope="session")
def simulated():
    """The simulated communicator."""
    return threads


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """A folder with matrix files."""
    folder = tmp_path_factory.mktemp("matrices")
    write_files(folder)
    return folder
