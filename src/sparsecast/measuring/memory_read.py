"""A read of memory in order: no product can deliver bytes faster."""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np
from numpy.typing import NDArray

from sparsecast.parallel import equal_parts, share


def memory_read(size_bytes: int, threads: int) -> Callable[[], object]:
    """Return a callable that reads an array once, shared by so many threads; one starts no pool.

    Its bytes are rounded up to whole words, and written once here, so that its memory is there.
    """
    words = np.ones(max(1, -(-size_bytes // 8)), dtype=np.uint64)
    return share(_sum_serial, _sum_parallel, (words,), equal_parts(len(words), threads).astype(np.uint64))


@numba.njit(nogil=True, cache=True)
def _sum(words: NDArray[np.uint64], first: np.uint64, last: np.uint64) -> np.uint64:
    # Whole numbers, whose sum may be taken in any order: the compiler adds many lanes at once.
    total = np.uint64(0)
    for i in range(first, last):
        total += words[i]
    return total


@numba.njit(nogil=True, cache=True)
def _sum_serial(words: NDArray[np.uint64], starts: NDArray[np.uint64]) -> NDArray[np.uint64]:
    totals = np.empty(len(starts) - 1, dtype=np.uint64)
    for part in range(len(totals)):
        totals[part] = _sum(words, starts[part], starts[part + 1])
    return totals


@numba.njit(nogil=True, cache=True, parallel=True)
def _sum_parallel(words: NDArray[np.uint64], starts: NDArray[np.uint64]) -> NDArray[np.uint64]:
    totals = np.empty(len(starts) - 1, dtype=np.uint64)
    for part in numba.prange(len(totals)):
        totals[part] = _sum(words, starts[part], starts[part + 1])
    return totals
