"""Checks the index arrays of SciPy's matrices, which conversions and compiled kernels trust."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.system.integers import falls

#: Formats whose index arrays are checked. All others are converted to COO by Python code of SciPy.
CHECKED_FORMATS = ("csr", "csc", "bsr", "coo")


def index_fault(A: Any) -> str | None:
    """Return what is wrong with the index arrays of a matrix in one of CHECKED_FORMATS, None if nothing is.

    SciPy's ``check_format`` does not see all of it (decision 67), and shortens the arrays of its matrix.
    """
    if A.format == "coo":
        if len({len(A.data), *map(len, A.coords)}) > 1:
            return f"{len(A.data):,} values have {' and '.join(f'{len(c):,}' for c in A.coords)} coordinates"
        return _outside(A.coords[0], A.shape[0]) or _outside(A.coords[1], A.shape[1])
    block = A.blocksize if A.format == "bsr" else (1, 1)
    lines, places = (count // size for count, size in zip(A.shape, block, strict=True))
    if A.format == "csc":
        lines, places = places, lines
    starts, indices = A.indptr, A.indices
    if any(array.ndim != 1 or array.dtype.kind not in "iu" for array in (starts, indices)):
        return f"indptr of {starts.ndim} x {starts.dtype} and indices of {indices.ndim} x {indices.dtype}"
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
    if not indices.size:
        return None
    least, greatest = int(np.min(indices)), int(np.max(indices))
    if least >= 0 and greatest < count:
        return None
    return f"index is {least if least < 0 else greatest}, expected 0 to {count - 1}"
