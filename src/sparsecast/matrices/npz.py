"""Matrices in SciPy's .npz archives, read by SciPy; and its matrices, from wherever, checked.

Conversions and compiled kernels trust their index arrays.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sparsecast.errors import InputError
from sparsecast.matrices.assembly import Contents, from_triplets
from sparsecast.matrices.sources import check_memory, damaged, failures_of
from sparsecast.matrices.values import computed_dtype, require_imaginary
from sparsecast.system.archives import DAMAGE, declared_bytes
from sparsecast.system.integers import falls, index_dtype

#: Formats whose index arrays are checked. Others are converted to COO, by Python code of SciPy but for LIL.
CHECKED_FORMATS = ("csr", "csc", "bsr", "coo")


def read_npz(path: Path, dtype: np.dtype[Any] | None) -> Contents:
    """Read a file of `scipy.sparse.save_npz`, in any of its formats; objects are never loaded."""
    with failures_of(path):
        try:
            declared = declared_bytes(path)
            check_memory(path, 2 * declared, f"an archive of {declared} bytes of arrays")
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # such as of values that a conversion changes
                matrix: Any = sparse.load_npz(path)
            if matrix.format == "dia" and (abs(matrix.offsets.astype(float)) >= max(*matrix.shape, 1)).any():
                raise ValueError("its diagonals lie outside of it")  # sums with them would wrap
        except InputError:
            raise
        except (*DAMAGE, ValueError, AttributeError, Warning) as error:
            problem = f"is no readable .npz of a sparse matrix ({error})"
            raise damaged(path, problem, "write it with scipy.sparse.save_npz") from error
        return Contents(from_scipy(path, matrix, dtype), is_integer=matrix.dtype.kind in "iu")


def from_scipy(path: Path, matrix: Any, value_type: np.dtype[Any] | None) -> sparse.csr_array[Any]:
    """Return a sparse matrix by rows, with checked indices; duplicates and zeros stay."""
    if matrix.ndim != 2:
        raise damaged(path, f"holds an array of {matrix.ndim} dimensions, expected 2", "save a matrix")
    if matrix.dtype.kind not in "biufc":
        problem = f"holds values of type {matrix.dtype}, expected numbers"
        raise damaged(path, problem, "save a matrix of numbers")
    target = value_type or computed_dtype(matrix.dtype)
    require_imaginary(matrix.dtype, target, str(path))
    rows, cols = matrix.shape
    stored = int(matrix.data.size)
    needed = (20 + 2 * max(matrix.dtype.itemsize, target.itemsize)) * stored + 16 * (rows + cols)
    check_memory(path, needed, f"a matrix of {rows} rows and {cols} columns")
    width = index_dtype(rows, cols, stored)
    fault = index_fault(matrix)
    if fault:
        raise damaged(path, f"its indices are damaged: {fault}")
    if matrix.format == "coo":
        i, j = (np.asarray(numbers, dtype=width) for numbers in (matrix.row, matrix.col))
        return from_triplets(i, j, matrix.data.astype(target), (rows, cols))
    by_rows = native(matrix).tocsr()
    arrays = ((by_rows.data, target), (by_rows.indices, width), (by_rows.indptr, width))
    # Contiguous and writable, copied only where they must be.
    buffers = tuple(np.require(array, dtype=dtype, requirements=["C", "W", "A"]) for array, dtype in arrays)
    return sparse.csr_array(buffers, shape=(rows, cols))


def native(A: Any) -> Any:
    """Return a matrix with values in this machine's order of bytes: SciPy converts no other from DIA."""
    return A if A.dtype.isnative else A.astype(A.dtype.newbyteorder("="))


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
