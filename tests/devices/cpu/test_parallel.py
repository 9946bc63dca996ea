"""How work is cut into parts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsecast.devices.cpu.parallel import balanced_parts, unsigned

work = st.lists(st.integers(0, 1000), min_size=0, max_size=60)


@given(work, st.integers(1, 9), st.sampled_from((np.int32, np.int64, np.uint32)))
def test_parts_cover_every_unit_once_and_are_even(units, parts, dtype):
    cumulative = np.concatenate(([0], np.cumsum(units, dtype=np.int64))).astype(dtype)
    starts = balanced_parts(cumulative, parts)
    assert len(starts) == parts + 1 and starts[0] == 0 and starts[-1] == len(units)
    assert (np.diff(starts) >= 0).all()
    loads = np.diff(cumulative[starts].astype(np.int64))
    assert loads.max() <= cumulative[-1] / parts + max(units, default=0)


@pytest.mark.parametrize("dtype", (np.int32, np.int64))
def test_unsigned_is_a_view(dtype):
    array = np.arange(5, dtype=dtype)
    view = unsigned(array)
    assert view.dtype.kind == "u" and view.dtype.itemsize == array.itemsize
    assert np.shares_memory(view, array) and view.tolist() == array.tolist()
