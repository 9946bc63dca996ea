"""The cache of Hossain and Saule, section III.C.1.c: fully associative lines, the least recently used leaves.

x and y share it, and it is empty at first. The entries come row by row, as CSR and COO have them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.records import Configuration
from sparsecast.system.jit import njit
from sparsecast.system.memory import CACHE_LINE_BYTES


def lru_misses(block: csr_array[Any], configuration: Configuration, lines: float) -> float:
    """Return the irregular accesses of a product of a block that miss an LRU cache of a number of lines.

    Those of x in both formats, and those of y in COO; the sequential y of CSR passes by.
    """
    a_line = CACHE_LINE_BYTES // configuration.value_bytes
    is_coo = configuration.format == "coo"
    return float(_misses(block.indptr, block.indices, block.shape[1], a_line, max(1, int(lines)), is_coo))


@njit(cache=True, nogil=True)
def _misses(
    indptr: NDArray[Any], indices: NDArray[Any], cols: int, a_line: int, capacity: int, is_coo: bool
) -> int:
    """Count misses; a ring of the cached lines goes from the oldest, at `newer[end]`, to the newest."""
    rows = len(indptr) - 1
    y_begin = cols // a_line + 1  # lines of x come first, those of y behind them
    end = y_begin + rows // a_line + 1
    newer = np.full(end + 1, -1, dtype=np.int64)
    older = np.full(end + 1, -1, dtype=np.int64)
    newer[end] = older[end] = end
    cached = misses = 0
    for row in range(rows):
        for entry in range(indptr[row], indptr[row + 1]):
            for turn in range(2 if is_coo else 1):
                line = y_begin + row // a_line if turn else indices[entry] // a_line
                if newer[line] >= 0:  # cached: take it out of its place
                    newer[older[line]] = newer[line]
                    older[newer[line]] = older[line]
                else:
                    misses += 1
                    if cached == capacity:
                        oldest = newer[end]
                        newer[end] = newer[oldest]
                        older[newer[oldest]] = end
                        newer[oldest] = -1
                    else:
                        cached += 1
                newest = older[end]
                newer[newest] = line
                older[line] = newest
                newer[line] = end
                older[end] = line
    return misses
