"""Threads as ranks."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def simulated():
    """The simulated communicator."""
    path = Path(__file__).parents[1] / "distributed" / "simulated.py"
    specification = importlib.util.spec_from_file_location("simulated_ranks", path)
    module = sys.modules["simulated_ranks"] = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module
