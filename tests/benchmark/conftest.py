"""Threads as ranks."""

import pytest

from ..distributed import simulated as threads


@pytest.fixture(scope="session")
def simulated():
    """The simulated communicator."""
    return threads
