"""How work is cut into parts, and run on threads."""

import os
import threading
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsecast.system.integers import unsigned
from sparsecast.system.parallel import ENTRIES_PER_THREAD, balanced_parts, equal_parts, in_parts, on_threads


@pytest.mark.parametrize("entries", (0, 10, 3_000_000))
def test_parts_cover_every_unit_once(entries):
    work = np.linspace(0, entries, 1001).astype(np.int64)
    seen = []

    def function(array, first, last):
        assert array.dtype == np.uint64
        seen.append((int(first), int(last)))

    in_parts(function, (work,), balanced_parts(work))
    seen.sort()
    assert seen[0][0] == 0 and seen[-1][1] == 1000
    assert all(one[1] == other[0] for one, other in pairwise(seen))


work_of_units = st.lists(st.integers(0, 1000), min_size=0, max_size=60)


@given(work_of_units, st.integers(1, 9), st.sampled_from((np.int32, np.int64, np.uint32)))
def test_as_many_parts_as_are_asked_for(units, parts, dtype):
    work = np.concatenate(([0], np.cumsum(units, dtype=np.int64))).astype(dtype)
    bounds = balanced_parts(work, parts)
    assert len(bounds) == parts + 1 and bounds[0] == 0 and bounds[-1] == len(units)
    assert (np.diff(bounds) >= 0).all()
    loads = np.diff(work[bounds].astype(np.int64))
    assert loads.max() <= work[-1] / parts + max(units, default=0)


@given(st.integers(0, 1000), st.integers(1, 9))
def test_equal_units_are_cut_into_equal_parts(units, parts):
    bounds = equal_parts(units, parts)
    assert len(bounds) == parts + 1 and bounds[0] == 0 and bounds[-1] == units
    assert np.ptp(np.diff(bounds)) <= 1


def test_little_work_stays_in_the_callers_thread():
    work = np.array([0, ENTRIES_PER_THREAD])
    assert on_threads(lambda first, last: threading.get_ident(), balanced_parts(work)) == [
        threading.get_ident()
    ]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_starts_threads_of_its_own():
    on_threads(lambda first, last: None, np.arange(3))
    child = os.fork()
    if child == 0:
        os._exit(len(on_threads(lambda first, last: None, np.arange(3))))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2


def test_only_signed_integers_are_viewed_as_unsigned():
    signed, floats, bits = np.arange(4, dtype=np.int32), np.ones(3), np.ones(3, dtype=np.uint8)
    assert unsigned(signed).dtype == np.uint32 and np.shares_memory(unsigned(signed), signed)
    assert unsigned(floats) is floats and unsigned(bits) is bits
