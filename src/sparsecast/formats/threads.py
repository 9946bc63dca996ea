"""Sharing a conversion among threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numba
import numpy as np
from numpy.typing import NDArray

from sparsecast.features.sweep import ENTRIES_PER_THREAD

T = TypeVar("T")


def unsigned(array: NDArray[Any]) -> NDArray[Any]:
    """Return an integer array viewed as unsigned, any other as it is.

    Signed indices cost a test for every load, which made the conversions half as fast again.
    """
    return array.view(np.dtype(f"u{array.dtype.itemsize}")) if array.dtype.kind == "i" else array


def threads_for(entries: int) -> int:
    """Return the threads that pay for this many entries: those of Numba at most."""
    return max(1, min(int(numba.get_num_threads()), entries // ENTRIES_PER_THREAD))


def even_parts(work: NDArray[Any]) -> list[int]:
    """Cut units of work into runs of even work, one for each thread that pays.

    Parameters
    ----------
    work : array of shape (units + 1,)
        Entries before each unit, and the total: row pointers where the units are rows.

    Returns
    -------
    list of int
        First unit of each run, and the number of units.
    """
    units, total = len(work) - 1, int(work[-1])
    parts = threads_for(total)
    # In the type of `work`, which would be copied to be compared with any other.
    targets = np.array([part * total // parts for part in range(1, parts)], dtype=work.dtype)
    return [0, *np.searchsorted(work, targets).tolist(), units]


def equal_parts(units: int, entries: int) -> list[int]:
    """Cut units that are all the same work, `entries` together, as `even_parts` does."""
    parts = threads_for(entries)
    return [part * units // parts for part in range(parts + 1)]


def on_threads(function: Callable[[int, int], T], bounds: list[int]) -> list[T]:
    """Return function(first, last) of each run of units, each run in a thread of its own.

    Not in Numba's pool: its fallback aborts the process when two callers use it at once.
    """
    if len(bounds) == 2:
        return [function(*bounds)]
    with ThreadPoolExecutor(len(bounds) - 1) as pool:
        return list(pool.map(function, bounds[:-1], bounds[1:]))


def in_parts(function: Callable[..., T], arrays: tuple[Any, ...], bounds: list[int]) -> list[T]:
    """Call a compiled function on runs of units, each in a thread of its own.

    Parameters
    ----------
    function : compiled function that releases the interpreter lock
        Called as (*arrays, first, last), all integers unsigned, for the units first to last - 1.
    arrays : tuple
        Integer arrays are passed as `unsigned`, all else as it is.
    bounds : list of int
        From `even_parts` or `equal_parts`.

    Returns
    -------
    list
        What the function returned for each run.
    """
    arrays = tuple(unsigned(each) if isinstance(each, np.ndarray) else each for each in arrays)

    def run(first: int, last: int) -> T:
        return function(*arrays, np.uint64(first), np.uint64(last))

    return on_threads(run, bounds)
