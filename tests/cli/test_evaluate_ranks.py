"""sparsecast evaluate --replay --ranks: the contract of its document, without MPI."""

import pytest

from sparsecast.benchmark.journal import keep_distributed
from sparsecast.machines.machine import detect
from sparsecast.machines.profile import Profile
from sparsecast.matrices.partitioning.distributing import distribute
from sparsecast.matrices.partitioning.methods import partition
from sparsecast.matrices.problem import Problem
from sparsecast.records import Configuration, MicroBenchmark

from ..conftest import distributed_record
from .conftest import complains

MATRICES = [f"gallery:{name}?n={n}" for name in ("poisson2d", "banded", "arrow") for n in (20, 40)]


@pytest.fixture
def measured(data_folder):
    """Let this machine have speeds of ranks, and products at 1 ns an entry and a microsecond a message."""
    speeds = [("triad", 2, size, None, size / 1e10) for size in (2**12, 2**20)]
    speeds += [("ping-pong", 2, size, None, 1e-6 + size / 5e9) for size in (8, 2**20)]
    every = (MicroBenchmark(*each[:2], 1, *each[2:], 0.01, False, "", "0.1") for each in speeds)
    machine = detect()
    Profile(machine, (), microbenchmarks=tuple(every)).save()
    records = []
    for specification in MATRICES:
        A = Problem.named(specification).matrix
        found = distribute(A, partition(A, 2, "rows")).to_dict()
        for name, time_s in (("local-1d", 1e-6), ("global-1d", 2e-6)):
            time_s += 0.5e-9 * A.nnz
            way = Configuration(name, "csr", "csr", "rows", 2, 1)
            records.append(distributed_record(way, specification, int(A.nnz), found, time_s))
    keep_distributed(machine, records)
    return machine


def test_the_document(run, exact, measured):
    document = exact(run("evaluate", "--replay", "--ranks", "--json"), "evaluate --replay --ranks")
    assert document["profile"] == measured.name
    assert document["models"]["sparsecast"]["forecasts"] == len(document["rows"]) == 2 * len(MATRICES)
    assert {row["group"] for row in document["rows"]} == {each.partition("?")[0] for each in MATRICES}


def test_nothing_kept(run, data_folder):
    Profile(detect(), ()).save()
    complains(run("evaluate", "--replay", "--ranks"), "mpirun -n N sparsecast calibrate --ranks")
