"""Distributed products are measured in turn, right over all ranks, or not at all."""

import pytest

from sparsecast.benchmark import distributed_measurement
from sparsecast.benchmark.distributed_measurement import measure_configurations
from sparsecast.distributed.processes import Nodes
from sparsecast.distributed.products.local_1d import Local1D
from sparsecast.errors import WrongResultError
from sparsecast.matrices.partitioning.distribution import Distribution
from sparsecast.matrices.problem import Problem
from sparsecast.records import Configuration


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(distributed_measurement, "_SAMPLES", 5)
    monkeypatch.setattr(distributed_measurement, "_WAIT_S", 0.0)
    monkeypatch.setattr(distributed_measurement, "_BATCHES", 2)
    monkeypatch.setattr(distributed_measurement, "_BATCH_S", 1e-4)


def ways(ranks, algorithms=("local-1d", "global-1d"), formats=("csr",), dtype="float64"):
    def method(algorithm):
        return "uniform-2d" if algorithm == "2d" else "rows"

    return [Configuration(a, f, f, method(a), ranks, 1, dtype) for a in algorithms for f in formats]


def measured(simulated, ranks, configurations, matrix="gallery:poisson2d?n=12", cores=8):
    left_out = {}

    def work(comm):
        problem = Problem.named(matrix) if comm.rank == 0 else None
        nodes = Nodes((0,) * ranks, cores)

        def leave_out(way, why):
            left_out[way.algorithm, way.format] = why

        return measure_configurations(comm, nodes, problem, configurations, leave_out)

    found = simulated.on_ranks(ranks, work)
    assert all(each == [] for each in found[1:])
    return found[0], left_out


@pytest.mark.parametrize("ranks", (1, 2, 4))
def test_records(simulated, ranks):
    algorithms = ("local-1d", "local-1d-overlap", "global-1d", *(["2d"] if ranks == 4 else []))
    found, left_out = measured(simulated, ranks, ways(ranks, algorithms, ("csr", "coo")))
    assert not left_out
    assert len(found) == 2 * len(algorithms)
    times = [each.record.time_s for each in found]
    assert times == sorted(times) and times[0] > 0
    for each in found:
        record = each.record
        assert record.error <= 1e-15
        assert record.nnz == 672
        assert (record.matrix, record.is_oversubscribed) == ("gallery:poisson2d?n=12", False)
        assert each.convert_s > 0
        assert Distribution.from_dict(record.distribution).nnz.sum() == 672
        has_remote = record.configuration.algorithm.startswith("local")
        assert set(record.parts_s) == {"local", "communication", *(["remote"] if has_remote else [])}
        assert all(len(seconds) == ranks and min(seconds) >= 0 for seconds in record.parts_s.values())
        assert all(seconds > 0 for seconds in record.parts_s["local"])


def test_ranks_beyond_the_cores_are_marked(simulated):
    found, _ = measured(simulated, 2, ways(2, ("local-1d",)), cores=1)
    assert found[0].record.is_oversubscribed


def test_a_format_that_does_not_suit_is_left_out_with_the_rank(simulated):
    found, left_out = measured(
        simulated, 2, ways(2, ("local-1d",), ("dia", "csr")), matrix="gallery:rmat?scale=10&degree=8"
    )
    assert [each.record.configuration.format for each in found] == ["csr"]
    assert set(left_out) == {("local-1d", "dia")}
    assert left_out["local-1d", "dia"].startswith("rank 0")


def test_a_wrong_product_is_never_timed(simulated, monkeypatch):
    monkeypatch.setattr(Local1D, "_add_remote", lambda self, x, out: None)
    with pytest.raises(WrongResultError, match="local-1d in csr on 2 ranks is wrong in 24 rows"):
        measured(simulated, 2, ways(2))


def test_rows_that_a_product_forgets_are_found_out(simulated, monkeypatch):
    monkeypatch.setattr(Local1D, "_bound", lambda self, A, name: lambda x, out: out[1:].fill(0.0))
    with pytest.raises(WrongResultError):
        measured(simulated, 1, ways(1, ("local-1d",)))
