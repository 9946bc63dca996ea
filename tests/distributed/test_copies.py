"""Compiled copies do what NumPy's slower ones do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsecast.distributed.copies import add_at, pick


@given(st.integers(1, 40), st.lists(st.integers(0, 39), max_size=60))
def test_pick(size, places):
    source = np.arange(float(size))
    where = np.array([place % size for place in places], dtype=np.int64)
    out = np.full(len(where), np.nan)
    pick(source, where, out)
    assert (out == source[where]).all()


@pytest.mark.parametrize("dtype", ("float32", "float64", "complex64", "complex128"))
def test_add_at(dtype):
    out, sums = np.arange(6).astype(dtype), np.array([10, 20, 30]).astype(dtype)
    add_at(out, np.array([5, 0, 2]), sums)
    assert out.tolist() == [20, 1, 32, 3, 4, 15]
    assert out.dtype == dtype
