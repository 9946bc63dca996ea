"""Partitions: every row has one rank, whatever the matrix, and methods do what they are named after."""

import importlib.util
import itertools
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import block_diag, csr_array, eye_array

from sparsecast.errors import InputError, MatrixSizeError
from sparsecast.matrices.gallery import gallery
from sparsecast.matrices.partitioning.methods import default_method, metis, partition
from sparsecast.matrices.partitioning.methods.metis import adjacency

from .conftest import ANY_SHAPE, HAS_METIS, METHODS_HERE, numbers, patterns, suits

needs_metis = pytest.mark.skipif(not HAS_METIS, reason="pymetis is not installed")


def check_bounds(found, shape):
    assert found.shape == shape
    for bounds in (found.row_bounds, found.column_bounds):
        assert bounds.dtype == np.int64
        assert bounds[0] == 0
        assert (np.diff(bounds) >= 0).all()
    if found.order is not None:
        assert sorted(found.order.tolist()) == list(range(shape[0]))
    if shape[0] == shape[1]:
        assert found.row_bounds.tolist() == found.column_bounds.tolist()


@pytest.mark.parametrize("method", METHODS_HERE)
@given(patterns(is_square=True), st.sampled_from((1, 2, 3, 4, 9, 16, 25)), st.integers(0, 3))
def test_every_row_and_column_has_one_rank(method, A, ranks, seed):
    if not suits(method, A, ranks):
        return
    found = partition(A, ranks, method, seed)
    check_bounds(found, A.shape)
    assert (found.method, found.ranks) == (method, ranks)
    assert found.parts == (ranks if method != "uniform-2d" else round(ranks**0.5))
    # The product in the new order is the product, in the new order.
    x = np.arange(1.0, A.shape[1] + 1)
    order = np.arange(A.shape[0]) if found.order is None else found.order
    np.testing.assert_array_equal(found.renumbered(A) @ x[order], (A @ x)[order])
    assert numbers(partition(A, ranks, method, seed)) == numbers(found)


@pytest.mark.parametrize("method", ANY_SHAPE)
@given(patterns(), st.integers(1, 20))
def test_rows_and_columns_of_rectangular_matrices_are_in_equal_numbers(method, A, ranks):
    found = partition(A, ranks, method)
    check_bounds(found, A.shape)
    for bounds, is_equal in (
        (found.row_bounds, method == "rows"),
        (found.column_bounds, A.shape[0] != A.shape[1]),
    ):
        assert not is_equal or np.ptp(np.diff(bounds)) <= 1


def smallest_of_all(lengths, parts):
    """Return the entries of the largest part, with the best of all cuts."""
    rows = len(lengths)
    cuts = itertools.combinations_with_replacement(range(rows + 1), parts - 1)
    return min(max(sum(lengths[i:j]) for i, j in itertools.pairwise((0, *inner, rows))) for inner in cuts)


@given(st.lists(st.integers(0, 9), min_size=0, max_size=8), st.integers(1, 4))
def test_no_cut_between_rows_has_a_smaller_largest_part(lengths, parts):
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    indices = np.concatenate([np.arange(length) for length in lengths] or [[]]).astype(np.int32)
    A = csr_array((np.ones(len(indices)), indices, indptr), shape=(len(lengths), 9))
    bounds = partition(A, parts, "nonzeros").row_bounds
    assert max(np.diff(indptr[bounds])) == smallest_of_all(lengths, parts)


def test_nonzeros_are_shared_evenly_and_not_piled_on_the_first_ranks():
    A = eye_array(100, format="csr")
    sizes = np.diff(partition(csr_array(A), 64, "nonzeros").row_bounds)
    assert sorted(set(sizes.tolist())) == [1, 2]


def test_a_2d_partition_has_equal_parts_and_one_permutation():
    found = partition(gallery("poisson2d", n=7), 16, "uniform-2d")
    assert np.diff(found.row_bounds).tolist() == [13, 13, 13, 10]
    assert found.is_2d
    other = partition(gallery("poisson2d", n=7), 16, "uniform-2d", seed=1)
    assert found.order.tolist() != other.order.tolist()


@given(patterns(is_square=True))
def test_the_graph_is_that_of_the_pattern_both_ways_without_the_diagonal(A):
    pattern = np.zeros(A.shape, dtype=bool)
    pattern[np.repeat(np.arange(A.shape[0]), np.diff(A.indptr)), A.indices] = True
    expected = (pattern | pattern.T) & ~np.eye(A.shape[0], dtype=bool)
    firsts, neighbours = adjacency(A)
    found = np.zeros(A.shape, dtype=bool)
    found[np.repeat(np.arange(A.shape[0]), np.diff(firsts)), neighbours] = True
    assert (found == expected).all()
    assert len(neighbours) == expected.sum()


AWKWARD = {
    "empty": csr_array((0, 0)),
    "one row": csr_array(np.ones((1, 1))),
    "no entries": csr_array((50, 50)),
    "a diagonal": csr_array(eye_array(50)),
    "dense": csr_array(np.ones((60, 60))),
    "two that do not touch": csr_array(block_diag([csr_array(np.ones((30, 30)))] * 2)),
    "one row that meets all": gallery("arrow", n=200, dense_rows=1),
    "a triangle": csr_array(np.tril(np.ones((40, 40)))),
}


@needs_metis
@pytest.mark.parametrize("name", AWKWARD)
@pytest.mark.parametrize("ranks", (1, 2, 7, 30, 49, 60, 300))
def test_metis_takes_any_matrix_and_writes_nothing_to_standard_output(name, ranks, capfd):
    A = AWKWARD[name]
    found = partition(A, ranks, "metis")
    check_bounds(found, A.shape)
    assert np.diff(found.row_bounds).max() <= max(2, 4 * -(-A.shape[0] // ranks))
    assert capfd.readouterr().out == ""


@needs_metis
def test_metis_keeps_what_belongs_together():
    A = csr_array(block_diag([csr_array(np.ones((30, 30)))] * 4))
    shuffled = np.random.default_rng(0).permutation(120)
    found = partition(A[shuffled][:, shuffled], 4, "metis")
    cliques = shuffled[found.order] // 30
    assert [len(set(cliques[first : first + 30].tolist())) for first in range(0, 120, 30)] == [1] * 4
    for first in range(0, 120, 30):  # a part keeps the order that its rows had
        assert (np.diff(found.order[first : first + 30]) > 0).all()


@needs_metis
def test_metis_refuses_a_graph_that_does_not_fit_in_memory(monkeypatch):
    monkeypatch.setattr("sparsecast.system.memory.free_bytes", lambda: 10**4)
    with pytest.raises(MatrixSizeError):
        partition(gallery("poisson2d", n=20), 4, "metis")


def test_metis_refuses_more_ends_of_edges_than_it_counts(monkeypatch):
    used = dict.fromkeys(("CSRAdjacency", "Options", "part_graph"))
    narrow = SimpleNamespace(zero_copy_dtype=lambda: np.int8, **used)
    monkeypatch.setitem(sys.modules, "pymetis", narrow)
    with pytest.raises(MatrixSizeError, match="127"):
        metis.by_metis(gallery("poisson2d", n=20), 4, seed=0)


def test_without_metis_rows_are_partitioned_by_nonzeros_and_that_is_said(monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pymetis" else found(name))
    for method in ("metis", None):
        with pytest.warns(UserWarning, match="METIS is not installed, .* by non-zeros; pip install"):
            assert partition(gallery("poisson2d", n=9), 4, method).method == "nonzeros"


def test_what_is_used_by_default():
    assert default_method((5, 4)) == ("nonzeros", ())
    assert default_method((5, 5))[0] == ("metis" if HAS_METIS else "nonzeros")
    assert partition(csr_array((5, 4)), 2).method == "nonzeros"


@pytest.mark.parametrize("method", METHODS_HERE)
def test_more_ranks_than_rows_leave_some_empty(method):
    found = partition(gallery("poisson2d", n=4), 10_000, method)
    assert np.diff(found.row_bounds).max() <= 1 or found.is_2d


SQUARE = gallery("poisson2d", n=4)


@pytest.mark.parametrize(
    ("A", "ranks", "method", "said"),
    [
        *((SQUARE, ranks, "rows", "expected a whole number") for ranks in (0, -1, 2**21 + 1, 10**30)),
        *((SQUARE, ranks, "rows", "expected a whole number") for ranks in (1.5, "4", None)),
        (SQUARE, 5, "uniform-2d", "4 or 9"),
        *((csr_array((4, 5)), 4, name, "square") for name in METHODS_HERE if name not in ANY_SHAPE),
    ],
)
def test_what_cannot_be_is_refused(A, ranks, method, said):
    with pytest.raises(InputError, match=said):
        partition(A, ranks, method)
