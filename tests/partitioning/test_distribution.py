"""What a partition makes of a matrix: against a count by hand, against theory, and as stored data."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from sparsecast.errors import InputError
from sparsecast.matrices.gallery import gallery
from sparsecast.matrices.partitioning.distributing import distribute
from sparsecast.matrices.partitioning.distribution import Distribution
from sparsecast.matrices.partitioning.estimates import estimated_distribution
from sparsecast.matrices.partitioning.methods import partition

from .conftest import HAS_METIS, STRIPS, patterns, suits

FIELDS = (
    *("rows", "columns", "local_nnz", "remote_nnz"),
    *("received_words", "sent_words", "received_messages", "sent_messages"),
)


def by_hand(A, made):
    """Return the numbers of a 1D distribution, from the triplets of the renumbered matrix."""
    B = made.renumbered(A).tocoo()
    row_rank = np.searchsorted(made.row_bounds, B.row, side="right") - 1
    col_rank = np.searchsorted(made.column_bounds, B.col, side="right") - 1
    asked = {(int(r), int(c), int(j)) for r, c, j in zip(row_rank, col_rank, B.col, strict=True) if r != c}
    pairs = {(r, c) for r, c, _ in asked}

    def each(condition):
        return [condition(rank) for rank in range(made.ranks)]

    return {
        "rows": np.diff(made.row_bounds).tolist(),
        "columns": np.diff(made.column_bounds).tolist(),
        "local_nnz": each(lambda rank: int(((row_rank == rank) & (col_rank == rank)).sum())),
        "remote_nnz": each(lambda rank: int(((row_rank == rank) & (col_rank != rank)).sum())),
        "received_words": each(lambda rank: sum(r == rank for r, _, _ in asked)),
        "sent_words": each(lambda rank: sum(c == rank for _, c, _ in asked)),
        "received_messages": each(lambda rank: sum(r == rank for r, _ in pairs)),
        "sent_messages": each(lambda rank: sum(c == rank for _, c in pairs)),
    }


def edges_by_hand(A, made):
    B = made.renumbered(A).tocoo()
    part = np.repeat(np.arange(made.ranks), np.diff(made.row_bounds))
    edges = {frozenset((int(i), int(j))) for i, j in zip(B.row, B.col, strict=True)}
    return sum(len(edge) == 2 and len({int(part[v]) for v in edge}) == 2 for edge in edges)


def check(found, A):
    assert found.nnz.sum() == A.nnz
    assert found.sent_words.sum() == found.received_words.sum()
    assert found.sent_messages.sum() == found.received_messages.sum()
    assert Distribution.from_dict(json.loads(json.dumps(found.to_dict()))).to_dict() == found.to_dict()


@pytest.mark.parametrize("method", STRIPS)
@given(patterns(), st.integers(1, 14))
def test_strips_are_counted_as_by_hand(method, A, ranks):
    if not suits(method, A, ranks):
        return
    made = partition(A, ranks, method)
    found = distribute(A, made)
    check(found, A)
    assert {name: getattr(found, name).tolist() for name in FIELDS} == by_hand(A, made)
    assert found.edge_cut == (edges_by_hand(A, made) if A.shape[0] == A.shape[1] else None)


@given(patterns(is_square=True), st.sampled_from((4, 9, 16, 25)))
def test_blocks_are_counted_as_by_hand(A, ranks):
    made = partition(A, ranks, "uniform-2d")
    found = distribute(A, made)
    check(found, A)
    B, bounds = made.renumbered(A), made.row_bounds
    for rank in range(ranks):
        i, j = divmod(rank, made.parts)
        block = B[bounds[i] : bounds[i + 1], bounds[j] : bounds[j + 1]]
        assert found.local_nnz[rank] == block.nnz
        assert (found.rows[rank], found.columns[rank]) == block.shape
    assert not found.received_words.any()
    assert found.edge_cut is None


def test_strips_of_a_grid_exchange_its_lines():
    n, ranks = 24, 6
    A = gallery("poisson2d", n=n)
    found = distribute(A, partition(A, ranks, "rows"))
    inner = slice(1, -1)
    assert (found.received_words[inner] == 2 * n).all()
    assert (found.received_messages[inner] == 2).all()
    assert found.received_words.sum() == 2 * n * (ranks - 1)
    assert found.edge_cut == n * (ranks - 1)
    assert (found.remote_nnz == found.received_words).all()
    assert estimated_distribution(n * n, n * n, A.nnz, ranks, "rows", 2).received_words[1] == pytest.approx(
        2 * n * (ranks - 1) / ranks
    )


@pytest.mark.parametrize(("name", "n", "dimension"), (("poisson2d", 48, 2), ("poisson3d", 16, 3)))
@pytest.mark.parametrize("method", STRIPS)
@pytest.mark.parametrize("ranks", (1, 4, 16, 64))
def test_estimates_of_meshes_are_near_the_count(name, n, dimension, method, ranks):
    A = gallery(name, n=n)
    counted = distribute(A, partition(A, ranks, method))
    about = estimated_distribution(*A.shape, A.nnz, ranks, method, dimension)
    assert about.is_estimate and not counted.is_estimate
    for field in ("rows", "columns", "nnz"):
        assert getattr(about, field).sum() == getattr(counted, field).sum()
    for field in ("received_words", "remote_nnz"):
        of_estimate, of_count = getattr(about, field).mean(), getattr(counted, field).mean()
        assert of_estimate == pytest.approx(of_count, rel=0.35)
    assert about.received_messages.mean() == pytest.approx(counted.received_messages.mean(), rel=0.8, abs=1)


def test_a_box_of_points_has_as_many_remote_entries_as_estimated():
    A = gallery("poisson3d", n=24, points=27)
    for method in ("rows", "nonzeros"):
        counted = distribute(A, partition(A, 8, method))
        about = estimated_distribution(*A.shape, A.nnz, 8, method, 3)
        assert about.remote_nnz.sum() == pytest.approx(counted.remote_nnz.sum(), rel=0.1)


@given(patterns(is_square=True), st.integers(1, 9))
def test_nothing_exceeds_the_bound_for_no_locality(A, ranks):
    bound = estimated_distribution(*A.shape, A.nnz, ranks, "rows")
    assert Distribution.from_dict(bound.to_dict()).to_dict() == bound.to_dict()
    if A.shape[0] % ranks == 0:  # parts are equal then, and unequal entries make the sum smaller
        counted = distribute(A, partition(A, ranks, "rows"))
        assert bound.received_words.sum() >= counted.received_words.sum()
        assert bound.received_messages.max() >= counted.received_messages.mean()


@given(
    *(st.integers(0, 10**15), st.integers(0, 10**15), st.integers(1, 5000)),
    st.sampled_from(("rows", "nonzeros", "metis", "uniform-2d")),
    st.sampled_from((None, 2, 3)),
)
def test_estimates_contradict_nothing_for_any_counts(rows, nnz, ranks, method, dimension):
    nnz = min(nnz, rows * rows)
    ranks = ranks if method != "uniform-2d" else round(ranks**0.5) ** 2
    found = estimated_distribution(rows, rows, nnz, ranks, method, dimension)
    assert found.ranks == ranks
    assert int(found.nnz.sum()) == nnz
    assert Distribution.from_dict(found.to_dict()).to_dict() == found.to_dict()


def test_a_hundred_thousand_ranks():
    found = estimated_distribution(10**9, 10**9, 7 * 10**9, 100_000, "metis", 3)
    face = (10**9 / 10**5) ** (2 / 3)
    assert found.received_words[0] == pytest.approx(6 * face * (1 - 10 ** (-5 / 3)), rel=1e-3)
    assert found.imbalance == 1.0


@pytest.mark.parametrize(
    "counts",
    (
        *((4, 5, 6, 2, "metis"), (4, 4, 6, 2, "uniform-2d"), (4, 4, 6, 0, "rows"), (4, 4, 6, 2, "kway")),
        *((4, 4, 6, 2, "rows", 4), (4, 5, 6, 2, "rows", 2)),
    ),
)
def test_what_cannot_be_estimated_is_refused(counts):
    with pytest.raises(InputError):
        estimated_distribution(*counts)


def test_a_matrix_without_entries_is_balanced_and_another_one_refused():
    A, made = csr_array((5, 5)), partition(csr_array((5, 5)), 3, "rows")
    assert distribute(A, made).imbalance == 1.0
    with pytest.raises(InputError):
        distribute(gallery("poisson2d", n=3), made)


STORED = distribute(gallery("poisson2d", n=4), partition(gallery("poisson2d", n=4), 2, "rows")).to_dict()


@pytest.mark.parametrize(
    "change",
    (
        {"rows": None},
        {"rows": []},
        {"rows": [8, 8, 8]},
        {"remote_nnz": [4.5, 4]},
        {"remote_nnz": [-4, 4]},
        {"remote_nnz": [2**60, 4]},
        {"sent_words": [4]},
        {"shape": [16]},
        {"shape": [16, 17]},
        {"method": 3},
        {"is_estimate": None},
        {"edge_cut": "x"},
        {"sent_words": [4, 5]},
        {"sent_messages": [1, 0]},
        {"sent_messages": [2, 0]},
        {"received_words": [5, 3]},
    ),
    ids=str,
)
def test_a_stored_distribution_that_contradicts_itself_is_refused(change):
    with pytest.raises(InputError):
        Distribution.from_dict(STORED | change)


def test_a_stored_distribution_without_a_field_is_refused():
    for name in STORED:
        with pytest.raises(InputError, match=name):
            Distribution.from_dict({key: value for key, value in STORED.items() if key != name})


@pytest.mark.skipif(not HAS_METIS, reason="pymetis is not installed")
def test_metis_communicates_less_than_strips_and_near_the_least():
    n, ranks = 96, 16
    A = gallery("poisson2d", n=n)
    strips = distribute(A, partition(A, ranks, "rows"))
    found = distribute(A, partition(A, ranks, "metis"))
    squares = 2 * 2 * n * (ranks**0.5 - 1)  # each inner line of a grid of squares, in both directions
    assert squares * 0.9 <= found.received_words.sum() <= 1.25 * squares
    assert found.received_words.sum() < strips.received_words.sum() / 2
