"""The micro-benchmark model on ranks: what a miss costs, where misses come from, what collectives span."""

from collections import OrderedDict

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

import sparsecast as sc
from sparsecast.matrices.partitioning.distributing import distribute
from sparsecast.matrices.partitioning.methods import partition
from sparsecast.models.clusters.cluster_model import ClusterTraining, Question
from sparsecast.papers.hossain_saule.micro import HossainMicroCluster, lru_misses, spanned_nodes
from sparsecast.records import Configuration, MicroBenchmark

BANDWIDTH = 2e9


def way(algorithm, format_name, ranks=4):
    method = "uniform-2d" if algorithm == "2d" else "rows"
    return Configuration(algorithm, format_name, format_name, method, ranks, 1)


@pytest.fixture(scope="module")
def model():
    def point(kind, ranks, size, time_s):
        return MicroBenchmark(kind, ranks, 1, size, None, time_s, None, False, "2026-01-01T00:00:00Z", "0")

    points = [point("triad", ranks, 24_000, 24_000 / BANDWIDTH) for ranks in (1, 4)]
    points += [
        point("fma", 1, 0, 1e-11),
        *(point(kind, 2, 8, 1e-6) for kind in ("allgatherv", "reduce", "bcast", "ping-pong")),
    ]
    machine = sc.profile("xeon-gold-6154-edr").machine
    return HossainMicroCluster(as_printed=True).fit(ClusterTraining(machine, tuple(points)))


def lru_by_the_book(A, capacity, with_y):
    cached, misses = OrderedDict(), 0
    for row in range(A.shape[0]):
        for col in A.indices[A.indptr[row] : A.indptr[row + 1]]:
            for line in [("x", col // 8), *([("y", row // 8)] if with_y else [])]:
                misses += line not in cached
                cached[line] = None
                cached.move_to_end(line)
                if len(cached) > capacity:
                    cached.popitem(last=False)
    return misses


@pytest.mark.parametrize("capacity", (1, 2, 7, 30, 1000))
@pytest.mark.parametrize("format_name", ("csr", "coo"))
def test_the_cache_evicts_what_was_used_longest_ago(capacity, format_name):
    A = csr_array(random_array((300, 401), density=0.02, rng=1))
    expected = lru_by_the_book(A, capacity, format_name == "coo")
    assert lru_misses(A, way("2d", format_name), capacity) == expected


def bytes_of(forecast, name):
    return dict(forecast.terms)[name] * BANDWIDTH


@pytest.mark.parametrize("algorithm", ("global-1d", "local-1d", "2d"))
@pytest.mark.parametrize("is_at_hand", (True, False))
def test_a_miss_moves_a_line_in_place_of_a_value(model, algorithm, is_at_hand):
    A = csr_array(random_array((4000, 4000), density=0.002, rng=2))
    configuration = way(algorithm, "csr")
    parts = partition(A, 4, configuration.partition)
    distribution = distribute(A, parts)
    bounds = [0, 1000, 2000, 3000, 4000]

    def block(rank):
        if algorithm == "2d":
            row, column = divmod(rank, 2)
            return csr_array(A[2000 * row : 2000 * (row + 1), 2000 * column : 2000 * (column + 1)])
        return csr_array(A[bounds[rank] : bounds[rank + 1]])

    question = Question(distribution, block=block if is_at_hand else None)
    (forecast,) = model.forecast([configuration], question)
    misses = bytes_of(forecast, "misses") / 64
    # Table I in CSR: two row pointers and a y a row, a column, a value and an x an entry.
    accessed = 16 * distribution.rows.mean() + 20 * distribution.nnz.mean()
    assert bytes_of(forecast, "sequential") + 8 * misses == pytest.approx(accessed)
    assert 0 < misses <= distribution.nnz.mean()


def test_the_pattern_of_the_matrix_counts_where_it_is_at_hand(model):
    rng = np.random.default_rng(3)
    near = sc.gallery("poisson2d", n=600)
    far = csr_array(near[:, rng.permutation(near.shape[1])])
    misses = []
    for A in (near, far):
        distribution = distribute(A, partition(A, 1, "rows"))
        asked = Question(distribution, block=lambda rank, A=A: A)
        (forecast,) = model.forecast([way("global-1d", "csr", 1)], asked)
        misses.append(bytes_of(forecast, "misses") / 64)
    assert misses[0] == -(-near.shape[1] // 8)  # each line once, as the cache holds some rows of the grid
    assert misses[1] > 2 * misses[0]


def test_coo_misses_lines_of_y(model):
    A = csr_array(random_array((40_000, 40_000), density=2e-5, rng=4))
    distribution = distribute(A, partition(A, 4, "uniform-2d"))
    csr, coo = (model.forecast([way("2d", name)], Question(distribution))[0] for name in ("csr", "coo"))
    more = (bytes_of(coo, "misses") - bytes_of(csr, "misses")) / 64
    row, touched = A.tocoo().coords[0], []
    for rank in range(4):
        mine = row[(row // 20_000 == rank // 2) & (A.tocoo().coords[1] // 20_000 == rank % 2)]
        touched.append(len(np.unique(mine // 8)))
    assert more == pytest.approx(np.mean(touched), rel=0.02)


@pytest.mark.parametrize(
    ("ranks", "nodes", "row", "column"),
    ((144, 4, 1, 4), (169, 5, 2, 5), (256, 8, 1, 8), (16, 1, 1, 1), (4, 4, 2, 2)),
)
def test_rows_and_columns_of_ranks_span_their_nodes(ranks, nodes, row, column):
    assert spanned_nodes(Configuration("2d", "csr", "csr", "uniform-2d", ranks, nodes)) == (row, column)
