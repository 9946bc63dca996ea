"""Matrices in SciPy's .npz archives. Their declared sizes are checked before they are loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sparsecast.errors import InputError
from sparsecast.matrices.assembly import Contents, from_triplets
from sparsecast.matrices.indices import index_fault
from sparsecast.matrices.sources import check_memory, damaged, failures_of, shown
from sparsecast.matrices.values import computed_dtype, require_imaginary
from sparsecast.system.archives import read_arrays
from sparsecast.system.integers import index_dtype

_INDICES = {"row", "col", "indices", "indptr", "offsets"}
_SPARSE_FORMATS = ("csr", "csc", "coo", "bsr", "dia")

# What SciPy's classes raise for arrays that do not fit together; they do not promise less.
_FAILURES = (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, RuntimeError)


def read_npz(path: Path, dtype: np.dtype[Any] | None) -> Contents:
    """Read a file of `scipy.sparse.save_npz`, in any of its formats; objects are never loaded."""

    def check(declared_bytes: int) -> None:
        check_memory(path, 2 * declared_bytes, f"an archive of {declared_bytes} bytes of arrays")

    with failures_of(path):
        try:
            matrix = _assembled(path, read_arrays(path, check))
        except InputError:
            raise
        except _FAILURES as error:
            problem = f"is no readable .npz of a sparse matrix ({error})"
            raise damaged(path, problem, "write it with scipy.sparse.save_npz") from error
        field = {"b": "pattern", "f": "real", "c": "complex"}.get(matrix.dtype.kind, "integer")
        return Contents(from_scipy(path, matrix, dtype), field)


def _assembled(path: Path, arrays: dict[str, NDArray[Any]]) -> Any:
    """Return the matrix of the arrays of a file, if one of its size fits in memory."""
    if not {"format", "shape"} <= arrays.keys():
        raise ValueError(f"it holds {', '.join(arrays)[:80]} and not 'format' and 'shape'")
    name, shape = arrays["format"], arrays["shape"]
    kind = name.item().decode("ascii") if name.dtype.kind == "S" else str(name.item())
    if kind not in _SPARSE_FORMATS:
        raise ValueError(f"its format is {shown(kind)}, expected one of {', '.join(_SPARSE_FORMATS)}")
    if shape.shape != (2,) or shape.dtype.kind not in "iu" or min(shape.tolist()) < 0:
        raise ValueError(f"its shape is {shown(str(shape.tolist()))}, expected two whole numbers from 0")
    rows, cols = shape.tolist()
    needed = 2 * sum(array.nbytes for array in arrays.values()) + 24 * (rows + cols)
    check_memory(path, needed, f"a matrix of {rows} rows and {cols} columns")
    data, kinds = arrays["data"], {arrays[name].dtype.kind for name in _INDICES & arrays.keys()}
    if not kinds <= {"i", "u"}:
        raise ValueError("its indices are no whole numbers")
    if kind == "coo":
        return sparse.coo_array((data, (arrays["row"], arrays["col"])), shape=(rows, cols))
    if kind == "dia":
        offsets, most = arrays["offsets"], max(rows, cols, 1)
        if not ((-most < offsets) & (offsets < most)).all():
            raise ValueError("its diagonals lie outside of it")
        return sparse.dia_array((data, offsets), shape=(rows, cols))
    build = {"csr": sparse.csr_array, "csc": sparse.csc_array, "bsr": sparse.bsr_array}[kind]
    return build((data, arrays["indices"], arrays["indptr"]), shape=(rows, cols))


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
    by_rows = matrix.tocsr()
    arrays = ((by_rows.data, target), (by_rows.indices, width), (by_rows.indptr, width))
    # Contiguous and writable, copied only where they must be.
    buffers = tuple(np.require(array, dtype=dtype, requirements=["C", "W", "A"]) for array, dtype in arrays)
    return sparse.csr_array(buffers, shape=(rows, cols))
