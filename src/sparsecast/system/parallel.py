"""Cuts work into even parts, and runs the parts on threads."""

from __future__ import annotations

import bisect
import functools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import pairwise
from typing import Any, TypeVar

import numba
import numpy as np
from numpy.typing import NDArray

from sparsecast.system.integers import unsigned

T = TypeVar("T")

#: Least entries that pay for another thread.
ENTRIES_PER_THREAD = 250_000


def threads_for(entries: int) -> int:
    """Return the number of threads that pays for this many entries, at most Numba's."""
    return max(1, min(int(numba.get_num_threads()), entries // ENTRIES_PER_THREAD))


def balanced_parts(work: NDArray[Any], parts: int | None = None) -> NDArray[np.int64]:
    """Return the bounds of parts with as even work as whole units allow.

    `work` holds the work before each unit, and the total, shape (units + 1,): row pointers where the units
    are rows. There are as many parts as pay, where the work is entries; some may be empty. Of the parts, the
    first units and the end are returned, shape (parts + 1,).
    """
    return balanced_parts_by(lambda unit: int(work[unit]), len(work) - 1, parts)


def balanced_parts_by(
    work_before: Callable[[int], int], units: int, parts: int | None = None
) -> NDArray[np.int64]:
    """Cut as `balanced_parts` does, with a function that gives the work before a unit or the end."""
    total = work_before(units)
    parts = threads_for(total) if parts is None else parts
    targets = (part * total // parts for part in range(1, parts))
    inner = [bisect.bisect_left(range(units), target, key=work_before) for target in targets]
    return np.array([0, *inner, units], dtype=np.int64)


def equal_parts(units: int, parts: int) -> NDArray[np.int64]:
    """Cut units of equal work, as `balanced_parts` does."""
    return np.arange(parts + 1) * units // parts


@functools.cache
def _workers() -> ThreadPoolExecutor:
    # Kept, since starting two threads takes as long as the conversion of 100,000 entries.
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="sparsecast")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_workers.cache_clear)  # a forked process has none of the threads


def on_threads(function: Callable[[int, int], T], bounds: NDArray[np.int64]) -> list[T]:
    """Return function(first, last) of each part: the first in the caller's thread, the others in a pool.

    Any number of callers share it; the pool for parts of kernels has one. The function must not call
    `on_threads`: the threads could all wait for each other.
    """
    starts = bounds.tolist()
    if len(starts) == 2:
        return [function(*starts)]
    others = [_workers().submit(function, *part) for part in pairwise(starts[1:])]
    try:
        first = function(*starts[:2])
    finally:
        wait(others)  # after an error, no part may still be writing
    return [first, *(other.result() for other in others)]


def in_parts(function: Callable[..., T], arrays: tuple[Any, ...], bounds: NDArray[np.int64]) -> list[T]:
    """Return the results of a compiled function for each part, on threads.

    The function releases the interpreter lock. It is called as (*arrays, first, last), all integers unsigned,
    for the units first to last - 1 of each part of `bounds`; arrays of integers are passed as `unsigned`, all
    else as it is.
    """
    arrays = tuple(unsigned(array) if isinstance(array, np.ndarray) else array for array in arrays)
    return on_threads(lambda first, last: function(*arrays, np.uint64(first), np.uint64(last)), bounds)
