"""The layout of a rank: nothing is lost, nothing is asked of the wrong rank."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from sparsecast.distributed.parts import RankPart, block_bounds, local_layout
from sparsecast.matrices.partitioning.distributing import distribute
from sparsecast.matrices.partitioning.partition import Partition


@st.composite
def partitioned(draw):
    """Return a matrix and a 1D partition with parts of any length, empty ones among them."""
    rows, cols, ranks = draw(st.integers(0, 12)), draw(st.integers(0, 12)), draw(st.integers(1, 5))
    is_square = draw(st.booleans())
    cols = rows if is_square else cols

    def bounds(length):
        inner = sorted(draw(st.lists(st.integers(0, length), min_size=ranks - 1, max_size=ranks - 1)))
        return np.array([0, *inner, length])

    row_bounds = bounds(rows)
    column_bounds = row_bounds if is_square else bounds(cols)
    dense = np.random.default_rng(draw(st.integers(0, 99))).integers(-2, 3, (rows, cols)).astype(float)
    return csr_array(dense), Partition("rows", ranks, row_bounds, column_bounds)


def layouts(A, partition):
    parts = []
    for rank in range(partition.ranks):
        first, end, left, right = block_bounds(partition, rank)
        assert (left, right) == (0, A.shape[1])
        parts.append(RankPart(partition, rank, A[first:end]))
    return [local_layout(part) for part in parts]


@given(partitioned())
@settings(max_examples=150)
def test_both_parts_together_are_the_rows(problem):
    A, partition = problem
    x = np.random.default_rng(0).integers(-4, 5, A.shape[1]).astype(float)
    for rank, layout in enumerate(layouts(A, partition)):
        own = slice(*partition.column_bounds[rank : rank + 2])
        y = layout.local @ x[own]
        y[layout.remote_rows] += layout.remote @ x[layout.needed]
        np.testing.assert_array_equal(y, (A @ x)[slice(*partition.row_bounds[rank : rank + 2])])
        assert layout.local.nnz + layout.remote.nnz == A[slice(*partition.row_bounds[rank : rank + 2])].nnz
        assert np.all(np.diff(layout.remote.indptr) > 0)
        assert np.all(np.diff(layout.needed) > 0)


@given(partitioned())
@settings(max_examples=100)
def test_each_needed_entry_is_asked_of_its_owner(problem):
    A, partition = problem
    for rank, layout in enumerate(layouts(A, partition)):
        asked = np.concatenate([np.empty(0), *(layout.needed[place] for place in layout.sources.values())])
        np.testing.assert_array_equal(asked, layout.needed)
        for owner, place in layout.sources.items():
            first, end = partition.column_bounds[owner : owner + 2]
            assert owner != rank
            assert place.stop > place.start
            assert np.all((first <= layout.needed[place]) & (layout.needed[place] < end))


@given(partitioned())
@settings(max_examples=100)
def test_it_is_what_the_distribution_counts(problem):
    """Models read a Distribution: it must be of what runs."""
    A, partition = problem
    counted, made = distribute(A, partition), layouts(A, partition)
    assert counted.local_nnz.tolist() == [each.local.nnz for each in made]
    assert counted.remote_nnz.tolist() == [each.remote.nnz for each in made]
    assert counted.received_words.tolist() == [len(each.needed) for each in made]
    assert counted.received_messages.tolist() == [len(each.sources) for each in made]
