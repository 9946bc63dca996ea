"""Slices, against a sum over the rows of each, and only where they are asked for."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from sparsecast.features.analysis import structure
from sparsecast.features.slices import SLICE_ROWS, Slices


@given(st.lists(st.integers(0, 9), max_size=300))
def test_a_slice_is_as_wide_as_its_longest_row(lengths):
    indptr = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64))).astype(np.int32)
    columns = np.concatenate([np.arange(n) for n in lengths] or [[]]).astype(np.int32)
    A = csr_array((np.ones(len(columns)), columns, indptr), shape=(len(lengths), 9))
    starts = range(0, len(lengths), SLICE_ROWS)
    expected = sum(SLICE_ROWS * max(lengths[first : first + SLICE_ROWS]) for first in starts)
    found = structure(A, groups=["slices", "row_lengths"]).checked()
    assert found.slices == Slices(expected)
