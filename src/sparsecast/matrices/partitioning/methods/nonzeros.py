"""Rows by non-zeros: the largest part is as small as cuts between rows allow.

The largest part is minimised by a bisection over its size with a greedy probe (Pinar and Aykanat, Fast
optimal load balancing algorithms for 1D partitioning, 2004). Of the cuts with that size, those nearest to
equal shares are taken.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from sparsecast.matrices.partitioning.methods import METHODS
from sparsecast.matrices.partitioning.partition import Integers, Partition
from sparsecast.system.jit import njit
from sparsecast.system.parallel import equal_parts


@METHODS.register("nonzeros")
def by_nonzeros(A: csr_array[Any], ranks: int, seed: int) -> Partition:
    """Cut the rows in their order; the columns of a rectangular matrix into equal numbers."""
    rows, cols = A.shape
    before = A.indptr.astype(np.int64)
    row_bounds = _cuts(before, ranks) if before[-1] else equal_parts(rows, ranks)
    column_bounds = row_bounds if rows == cols else equal_parts(cols, ranks)
    return Partition("nonzeros", ranks, row_bounds, column_bounds)


@njit(cache=True, nogil=True)
def _cuts(before: Integers, parts: int) -> Integers:
    """Return the bounds of parts, from the cumulative work of the rows."""
    rows, longest = len(before) - 1, np.int64(0)
    for row in range(rows):
        longest = max(longest, before[row + 1] - before[row])
    # The least possible work of the largest part.
    most, enough = max(longest, -(-before[-1] // parts)), longest + before[-1] // parts
    while most < enough:
        middle = (most + enough) // 2
        reached = 0
        for _ in range(parts):
            reached = np.searchsorted(before, before[reached] + middle, side="right") - 1
        if reached == rows:
            enough = middle
        else:
            most = middle + 1
    # The first row at which the parts from here on can still begin.
    earliest = np.empty(parts + 1, dtype=np.int64)
    earliest[parts] = rows
    for part in range(parts - 1, -1, -1):
        earliest[part] = np.searchsorted(before, before[earliest[part + 1]] - most)
    bounds = np.zeros(parts + 1, dtype=np.int64)
    for part in range(1, parts):
        reach = np.searchsorted(before, before[bounds[part - 1]] + most, side="right") - 1
        share = before[-1] / parts * part
        near = np.searchsorted(before, share)
        if near > 0 and share - before[near - 1] < before[near] - share:
            near -= 1
        bounds[part] = max(bounds[part - 1], earliest[part], min(near, reach))
    bounds[parts] = rows
    return bounds
