"""A sequential read of memory: the upper limit of the bandwidth of a product."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sparsecast.system.jit import njit
from sparsecast.system.numba_pool import each_part, share
from sparsecast.system.parallel import equal_parts


def memory_read(size_bytes: int, threads: int) -> Callable[[], object]:
    """Return a callable that reads an array once, on `threads` threads; one thread starts no pool.

    The array has whole words and is written once here, so that its memory is allocated.
    """
    words = np.ones(max(1, -(-size_bytes // 8)), dtype=np.uint64)
    starts = equal_parts(len(words), threads).astype(np.uint64)
    return share(_sums, (words,), starts, scratch=np.empty(threads, dtype=np.uint64))


@njit(nogil=True, cache=True)
def _sum(part, words, totals, starts):  # type: ignore[no-untyped-def]
    # Whole numbers, whose sum may be taken in any order: the compiler adds many lanes at once.
    total = np.uint64(0)
    for i in range(starts[part], starts[part + 1]):
        total += words[i]
    totals[part] = total


@njit(nogil=True, cache=True)
def _sums(words, totals, starts, pool):  # type: ignore[no-untyped-def]
    each_part(_sum, (words, totals, starts), pool)
    return totals
