"""The cases of tests/mpi on a simulated communicator: one process, no MPI."""

import pytest

from ..mpi.cases import CASES


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("ranks", (3, 4))
def test_on_threads(simulated, files, case, ranks):
    simulated.on_ranks(ranks, lambda comm: CASES[case](comm, files))
