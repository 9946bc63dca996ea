"""Models of many ranks scored on kept products of a machine whose laws are known."""

import dataclasses

import pytest

from sparsecast.benchmark.replay import replay_clusters
from sparsecast.errors import ProfileError
from sparsecast.machines.machine import Cache, Machine
from sparsecast.matrices.partitioning.distribution import Distribution
from sparsecast.matrices.partitioning.estimates import estimated_distribution
from sparsecast.models.clusters import CLUSTER_MODELS
from sparsecast.models.clusters.cluster_model import ClusterTraining, Question
from sparsecast.records import Configuration, Forecast, MicroBenchmark

from ..conftest import distributed_record

MACHINE = Machine("made up", "none", 2, 2, (Cache(3, 2**20, 2),), (), 10**10, "none")
ENTRY_S = {"csr": 1e-9, "coo": 1.5e-9}


def microbenchmarks():
    found = [("fma", 1, 0, None, 2e-10)]
    for size in (64, 4096, 2**18, 2**24):
        found += [("triad", ranks, size, None, size / 10e9) for ranks in (1, 2)]
        found += [
            (kind, 2, size, None, 1e-6 + size / 4e9)
            for kind in ("ping-pong", "allgatherv", "reduce", "bcast")
        ]
        found.append(("neighbour exchange", 2, size, 1, 1e-6 + size / 4e9))
    return tuple(
        MicroBenchmark(kind, ranks, 1, size, near, time_s, 0.01, False, "", "0.1")
        for kind, ranks, size, near, time_s in found
    )


def record(number, algorithm="local-1d", name="csr", ranks=2, is_oversubscribed=False):
    rows = 1000 * (number + 1)
    found = estimated_distribution(rows, rows, 5 * rows, ranks, "metis", 2)
    computed_s = ENTRY_S[name] * 5 * rows / ranks
    sent_s = {"local-1d": 2e-6, "global-1d": 2e-6 + 4 * rows / 4e9}[algorithm]
    parts_s = {"local": [computed_s] * ranks, "communication": [sent_s] * ranks, "remote": [0.0] * ranks}
    way, matrix = Configuration(algorithm, name, name, "metis", ranks, 1), f"file:m{number}?sha256={number}"
    more = {"noise": 0.01, "is_oversubscribed": is_oversubscribed, "parts_s": parts_s}
    return distributed_record(way, matrix, 5 * rows, found.to_dict(), computed_s + sent_s, **more)


def question_of(found):
    """Return what a perfect node model says."""
    distribution = Distribution.from_dict(found.distribution)
    local = {
        name: Forecast(None, 9, seconds * float(distribution.nnz.max()), None, None, 1, None, None)
        for name, seconds in ENTRY_S.items()
    }
    return Question(distribution, local)


RECORDS = [
    record(number, algorithm, name)
    for number in range(12)
    for algorithm in ("local-1d", "global-1d")
    for name in ("csr", "coo")
]


def replayed(records):
    return replay_clusters(ClusterTraining(MACHINE, microbenchmarks(), tuple(records)), question_of)


@pytest.fixture(scope="module")
def found():
    return replayed([*RECORDS, record(3, ranks=9, is_oversubscribed=True)])


def test_known_laws_are_forecast(found):
    score = found.models["sparsecast"]
    assert (score.forecasts, score.unforecast) == (48, 0)
    assert score.median_error < 0.1
    assert (score.choices, score.good) == (12, 1.0)
    assert score.found > 0.5 and 0 <= score.regret < 0.05
    assert score.median_noise == pytest.approx(0.01)
    assert found.oversubscribed == 1
    assert {row.record.configuration.ranks for row in found.rows} == {2}


def test_every_model_is_scored_or_refused_with_a_reason(found):
    for name in CLUSTER_MODELS.names():
        assert name in found.models or any(key.startswith(name) for key in found.refused)
    unforecast = [score.unforecast for score in found.models.values()]
    assert unforecast == sorted(unforecast)


def test_the_last_measurement_counts():
    slow = [dataclasses.replace(each, time_s=100 * each.time_s) for each in RECORDS]
    assert replayed([*slow, *RECORDS]).rows == replayed(RECORDS).rows


def test_a_model_does_not_see_what_it_forecasts():
    """A matrix whose product takes a hundred times as long is forecast as the others are."""
    odd = [
        dataclasses.replace(each, time_s=100 * each.time_s, parts_s={}) if "m5" in each.matrix else each
        for each in RECORDS
    ]
    rows = [row for row in replayed(odd).rows if row.model == "sparsecast" and "m5" in row.record.matrix]
    assert len(rows) == 4
    assert all(row.forecast.time_s < row.record.time_s / 20 for row in rows)


@pytest.mark.parametrize("records", ((), RECORDS[:4], [record(k, is_oversubscribed=True) for k in range(9)]))
def test_too_few_matrices_are_refused(records):
    with pytest.raises(ProfileError, match=r"[01] groups of matrices"):
        replayed(records)
