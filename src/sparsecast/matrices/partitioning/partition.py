"""Partition: the rows of a matrix and the entries of x that each rank has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.errors import InputError
from sparsecast.matrices.reordering import reordered
from sparsecast.system.integers import falls

Integers = NDArray[np.int64]


def require_square(shape: tuple[int, int], method: str) -> None:
    """Refuse a rectangular matrix: its rows and columns cannot be renumbered alike."""
    rows, cols = shape
    if rows != cols:
        raise InputError(
            f"partition '{method}' of a matrix of {rows:,} x {cols:,}: expected a square one; "
            f"partition it by rows or nonzeros"
        )


@dataclass(frozen=True, eq=False)
class Partition:
    """Contiguous parts of the rows and the columns of a renumbered matrix.

    A 1D partition has a part of the rows, with all their columns, for each rank. A 2D partition has P = p x p
    ranks and p parts of the rows and of the columns: rank i p + j has block (i, j).

    Attributes
    ----------
    method : str
        ``"rows"``, ``"nonzeros"``, ``"metis"`` or ``"uniform-2d"``.
    ranks : int
    row_bounds, column_bounds : int64 arrays
        Part k has the renumbered rows row_bounds[k] to row_bounds[k + 1] - 1, and owns those entries of x;
        the same arrays where the matrix is square. Parts may be empty.
    order : int64 array or None
        Renumbered row (and column) i is row order[i] of the matrix. Only square matrices are renumbered; None
        where nothing moves.
    """

    method: str
    ranks: int
    row_bounds: Integers
    column_bounds: Integers
    order: Integers | None = None

    @property
    def parts(self) -> int:
        """Parts of the rows: the ranks in 1D, their square root in 2D."""
        return len(self.row_bounds) - 1

    @property
    def is_2d(self) -> bool:
        return self.parts != self.ranks

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.row_bounds[-1]), int(self.column_bounds[-1])

    @property
    def is_sound(self) -> bool:
        """Whether the arrays are those of a partition: of a file, or of a user, they may be anything."""
        for bounds in (self.row_bounds, self.column_bounds):
            if bounds.dtype != np.int64 or bounds.ndim != 1 or not bounds.size:
                return False
            if bounds[0] != 0 or falls(bounds).size:
                return False
        parts = self.parts
        if parts < 1 or len(self.column_bounds) != parts + 1 or self.ranks not in (parts, parts**2):
            return False
        order, (rows, cols) = self.order, self.shape
        if order is None:
            return True
        return order.dtype == np.int64 and rows == cols and np.array_equal(np.sort(order), np.arange(rows))

    def renumbered(self, A: csr_array[Any]) -> csr_array[Any]:
        """Return the matrix in the order of the partition, or `A` itself where nothing moves."""
        return A if self.order is None else reordered(A, self.order)
