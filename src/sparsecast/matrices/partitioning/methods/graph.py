"""The graph of a matrix, for methods that renumber rows and columns alike."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.errors import InputError
from sparsecast.matrices.partitioning.partition import Integers


def require_square(shape: tuple[int, int], method: str) -> None:
    """Refuse a rectangular matrix: its rows and columns cannot be renumbered alike."""
    rows, cols = shape
    if rows != cols:
        raise InputError(
            f"partition '{method}' of a matrix of {rows:,} x {cols:,}: expected a square one; "
            f"partition it by rows or nonzeros"
        )


def adjacency(A: csr_array[Any]) -> tuple[Integers, NDArray[Any]]:
    """Return the neighbours of each vertex of A + A^T without its diagonal: first places, and neighbours."""
    # Of bool, where the sum of entries at one place, and of A and A^T, cannot come to zero.
    stored = int(A.indptr[-1])
    pattern = csr_array((np.ones(stored, dtype=bool), A.indices[:stored], A.indptr), shape=A.shape)
    both = csr_array(pattern + pattern.T)
    rows = np.repeat(np.arange(both.shape[0], dtype=both.indices.dtype), np.diff(both.indptr))
    is_edge = both.indices != rows
    edges_before = np.concatenate(([0], np.cumsum(is_edge)))
    return edges_before[both.indptr], both.indices[is_edge]
