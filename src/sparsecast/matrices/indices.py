"""Checks the index arrays of SciPy's matrices, which conversions and compiled kernels trust."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.system.integers import falls

#: Formats whose index arrays are checked. Others are converted to COO, by Python code of SciPy but for LIL.
CHECKED_FORMATS = ("csr", "csc", "bsr", "coo")


def index_fault(A: Any) -> str | None:
    """Return what is wrong with the index arrays of a matrix; None if nothing is that a conversion trusts.

    SciPy's ``check_format`` does not see all of it (decision 67), and shortens the arrays of its matrix.
    """
    if A.format == "lil":
        is_alike = [*map(len, A.rows)] == [*map(len, A.data)]
        return None if is_alike else "rows have more columns than values, or fewer"
    if A.format == "coo":
        if len({len(A.data), *map(len, A.coords)}) > 1:
            return "values, rows and columns differ in number"
        return _outside(A.coords[0], A.shape[0]) or _outside(A.coords[1], A.shape[1])
    if A.format not in CHECKED_FORMATS:
        return None
    block = A.blocksize if A.format == "bsr" else (1, 1)
    starts, indices = A.indptr, A.indices
    dimensions = starts.ndim, indices.ndim, A.data.ndim
    kinds = (starts.dtype.kind + indices.dtype.kind).strip("iu")
    if kinds or 0 in block or dimensions != (1, 1, 3 if A.format == "bsr" else 1):
        return f"arrays have the shapes {starts.shape}, {indices.shape}, {A.data.shape}"
    lines, places = (count // size for count, size in zip(A.shape, block, strict=True))
    if A.format == "csc":
        lines, places = places, lines
    if len(starts) != lines + 1 or starts[0] != 0:
        return f"indptr has {len(starts):,} numbers from {starts[:1]}, expected {lines + 1:,} from 0"
    fallen = falls(starts)
    if fallen.size:
        return f"indptr falls from {starts[fallen[0]]} to {starts[fallen[0] + 1]}"
    stored = int(starts[-1])
    if stored > min(len(indices), len(A.data)):
        return f"indptr ends at {stored:,}, with {len(indices):,} indices and {len(A.data):,} values"
    return _outside(indices[:stored], places)


def _outside(indices: NDArray[Any], count: int) -> str | None:
    """Return which index is not from 0 to `count` - 1."""
    if not indices.size or 0 <= int(np.min(indices)) <= int(np.max(indices)) < count:
        return None
    return f"indices go from {np.min(indices)} to {np.max(indices)}, expected 0 to {count - 1}"
