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


@given(partitioned())
@settings(max_examples=200)
def test_nothing_is_lost_and_nothing_asked_of_the_wrong_rank(problem):
    A, partition = problem
    x = np.random.default_rng(0).integers(-4, 5, A.shape[1]).astype(float)
    counted = distribute(A, partition)  # which models read: it must be of what runs
    for rank in range(partition.ranks):
        first, end, left, right = block_bounds(partition, rank)
        assert (left, right) == (0, A.shape[1])
        rows = A[first:end]
        layout = local_layout(RankPart(partition, rank, rows))
        y = layout.local @ x[slice(*partition.column_bounds[rank : rank + 2])]
        y[layout.remote_rows] += layout.remote @ x[layout.needed]
        np.testing.assert_array_equal(y, rows @ x)
        assert layout.local.nnz + layout.remote.nnz == rows.nnz
        assert np.all(np.diff(layout.remote.indptr) > 0)
        assert np.all(np.diff(layout.needed) > 0)
        asked = np.concatenate([np.empty(0), *(layout.needed[place] for place in layout.sources.values())])
        np.testing.assert_array_equal(asked, layout.needed)
        for owner, place in layout.sources.items():
            begin, behind = partition.column_bounds[owner : owner + 2]
            assert owner != rank and place.stop > place.start
            assert np.all((begin <= layout.needed[place]) & (layout.needed[place] < behind))
        assert (counted.local_nnz[rank], counted.remote_nnz[rank]) == (layout.local.nnz, layout.remote.nnz)
        received = counted.received_words[rank], counted.received_messages[rank]
        assert received == (len(layout.needed), len(layout.sources))
