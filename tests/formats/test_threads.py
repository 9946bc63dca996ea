"""How conversions are cut into parts and run in threads."""

from __future__ import annotations

import threading
from itertools import pairwise

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsecast.features.sweep import ENTRIES_PER_THREAD
from sparsecast.formats.threads import equal_parts, even_parts, in_parts, on_threads, unsigned

LIMIT = int(numba.config.NUMBA_NUM_THREADS)


@pytest.mark.parametrize("entries", (0, 10, 3_000_000))
def test_parts_cover_every_unit_once(entries):
    work = np.linspace(0, entries, 1001).astype(np.int64)
    seen = []

    def function(array, first, last):
        assert array.dtype == np.uint64
        seen.append((int(first), int(last)))

    in_parts(function, (work,), even_parts(work))
    seen.sort()
    assert seen[0][0] == 0 and seen[-1][1] == 1000
    assert all(one[1] == other[0] for one, other in pairwise(seen))


@given(st.lists(st.integers(0, 4 * ENTRIES_PER_THREAD), max_size=30))
def test_parts_are_even_and_no_more_than_pay(units):
    work = np.concatenate(([0], np.cumsum(units, dtype=np.int64)))
    bounds = even_parts(work)
    assert bounds[0] == 0 and bounds[-1] == len(units) and bounds == sorted(bounds)
    parts = len(bounds) - 1
    assert 1 <= parts <= numba.get_num_threads()
    assert parts == 1 or work[-1] >= parts * ENTRIES_PER_THREAD
    loads = np.diff(work[bounds])
    assert loads.max() <= work[-1] / parts + max(units, default=0)


@given(st.integers(0, 1000), st.integers(0, 9 * ENTRIES_PER_THREAD))
def test_equal_units_are_cut_into_equal_parts(units, entries):
    bounds = equal_parts(units, entries)
    assert bounds[0] == 0 and bounds[-1] == units
    assert len(bounds) - 1 == max(1, min(numba.get_num_threads(), entries // ENTRIES_PER_THREAD))
    assert np.ptp(np.diff(bounds)) <= 1


def test_little_work_stays_in_the_callers_thread():
    work = np.array([0, ENTRIES_PER_THREAD])
    assert on_threads(lambda first, last: threading.get_ident(), even_parts(work)) == [threading.get_ident()]


@pytest.mark.skipif(LIMIT < 2, reason="one thread has no others")
def test_results_come_in_order_and_an_error_reaches_the_caller():
    work = np.array([0, ENTRIES_PER_THREAD, 2 * ENTRIES_PER_THREAD])
    assert in_parts(lambda first, last: (int(first), int(last)), (), even_parts(work)) == [(0, 1), (1, 2)]

    def fail(first, last):
        raise MemoryError("full")

    with pytest.raises(MemoryError, match="full"):
        in_parts(fail, (), even_parts(work))


def test_only_signed_integers_are_viewed_as_unsigned():
    signed, floats, bits = np.arange(4, dtype=np.int32), np.ones(3), np.ones(3, dtype=np.uint8)
    assert unsigned(signed).dtype == np.uint32 and np.shares_memory(unsigned(signed), signed)
    assert unsigned(floats) is floats and unsigned(bits) is bits
