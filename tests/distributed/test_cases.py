"""The cases of tests/mpi on a simulated communicator: one process, no MPI."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

CASES = Path(__file__).parents[1] / "mpi" / "cases.py"

#: From its text, because tests are listed before fixtures can be had.
NAMES = [name.id for name in ast.parse(CASES.read_text()).body[-1].value.generators[0].iter.elts]


@pytest.mark.parametrize("case", NAMES)
@pytest.mark.parametrize("ranks", (3, 4))
def test_on_threads(simulated, cases, files, case, ranks):
    simulated.on_ranks(ranks, lambda comm: cases.CASES[case](comm, files))
