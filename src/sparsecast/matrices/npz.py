"""Matrices in SciPy's .npz archives, whose declared sizes are checked before they are loaded."""

from __future__ import annotations

import math
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy_format
from scipy import sparse

from sparsecast.errors import InputError
from sparsecast.integers import index_dtype
from sparsecast.matrices.assembly import Compressed, from_triplets
from sparsecast.matrices.sources import check_memory, damaged, failures_of, regular_file_size, shown
from sparsecast.matrices.values import computed_dtype, require_imaginary

# What the libraries raise when a file is damaged; they do not promise less.
_FAILURES = (
    *(ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, AssertionError),
    *(RuntimeError, zipfile.BadZipFile),
)

_READ_HEADER = {(1, 0): npy_format.read_array_header_1_0, (2, 0): npy_format.read_array_header_2_0}
_SPARSE_FORMATS = ("csr", "csc", "coo", "bsr", "dia")
_NPZ_REMEDY = "write it with scipy.sparse.save_npz"


def read_npz(path: Path, dtype: np.dtype[Any] | None) -> tuple[Compressed, str]:
    """Read what `scipy.sparse.save_npz` wrote, in any of its formats.

    Parameters
    ----------
    path : Path
        The file.
    dtype : numpy.dtype or None
        Type of the values returned; None for that of `computed_dtype`.

    Returns
    -------
    tuple
        The matrix, and what its values were: ``"real"``, ``"complex"``, ``"integer"`` or ``"pattern"``.

    Raises
    ------
    MatrixFileError
        If the file is damaged, holds objects, or is no sparse matrix.
    MatrixSizeError
        If the matrix does not fit in memory.
    InputError
        If a real type is asked for and the file is complex.
    """
    regular_file_size(path)
    with failures_of(path):
        try:
            _check_npz(path)
            matrix = sparse.load_npz(path)
        except InputError:
            raise
        except _FAILURES as error:
            raise damaged(path, f"is no readable .npz of a sparse matrix ({error})", _NPZ_REMEDY) from error
        except zlib.error as error:
            raise damaged(path, f"its compressed data are damaged ({error})") from error
        return from_scipy(path, matrix, dtype)


def _check_npz(path: Path) -> None:
    """Check every array of the archive by its header: no objects, and sizes that are true and fit."""
    total = 0
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            with archive.open(member) as stream:
                version = npy_format.read_magic(stream)
                if version not in _READ_HEADER:
                    raise ValueError(f"array {member.filename} is of version {version}")
                shape, _, dtype = _READ_HEADER[version](stream)
                if dtype.hasobject:
                    raise ValueError(f"array {member.filename} holds Python objects, which are never loaded")
                size = math.prod(shape) * dtype.itemsize
                if size != member.file_size - stream.tell():
                    raise ValueError(f"array {member.filename} declares {size} bytes and has others")
                total += size
        names = archive.namelist()
        if "format.npy" not in names or "shape.npy" not in names:
            raise ValueError(f"it holds {', '.join(names)[:80]} and not 'format' and 'shape'")
    check_memory(path, 2 * total, f"an archive of {total} bytes of arrays")
    with np.load(path, allow_pickle=False) as loaded:
        name, shape = loaded["format"], loaded["shape"]
    kind = name.item().decode("ascii") if name.dtype.kind == "S" else str(name.item())
    if kind not in _SPARSE_FORMATS:
        raise ValueError(f"its format is {shown(kind)}, expected one of {', '.join(_SPARSE_FORMATS)}")
    if shape.shape != (2,) or shape.dtype.kind not in "iu" or min(shape.tolist()) < 0:
        raise ValueError(f"its shape is {shown(str(shape.tolist()))}, expected two whole numbers from 0")
    rows, cols = shape.tolist()
    check_memory(path, 2 * total + 24 * (rows + cols), f"a matrix of {rows} rows and {cols} columns")


def from_scipy(path: Path, matrix: Any, dtype: np.dtype[Any] | None) -> tuple[Compressed, str]:
    """Return a checked sparse matrix by rows, duplicates and explicit zeros kept."""
    if matrix.ndim != 2:
        raise damaged(path, f"holds an array of {matrix.ndim} dimensions, expected 2", "save a matrix")
    target = _value_dtype(path, matrix.dtype, dtype)
    stored = int(matrix.data.size)
    shape = (int(matrix.shape[0]), int(matrix.shape[1]))
    entry_bytes = 20 + 2 * max(matrix.dtype.itemsize, target.itemsize)
    needed = entry_bytes * stored + 16 * sum(shape)
    check_memory(path, needed, f"a matrix of {shape[0]} rows and {shape[1]} columns")
    field = _value_field(matrix.dtype)
    width = index_dtype(*shape, stored)
    if matrix.format in ("csr", "csc", "bsr"):
        # The conversions trust the indices.
        try:
            matrix.check_format(full_check=True)
        except ValueError as error:
            raise damaged(path, f"its indices are damaged ({error})") from error
    if matrix.format == "coo":
        rows, cols = (np.asarray(numbers, dtype=width) for numbers in (matrix.row, matrix.col))
        return from_triplets(rows, cols, matrix.data.astype(target), shape, 0), field
    by_rows = matrix.tocsr()
    return (
        Compressed(
            _own(by_rows.indptr, width), _own(by_rows.indices, width), _own(by_rows.data, target), shape
        ),
        field,
    )


def _own(array: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return `array` as `dtype`, contiguous and writable, copied only where it must be."""
    return np.require(array, dtype=dtype, requirements=["C", "W", "A"])


def _value_dtype(path: Path, found: np.dtype[Any], asked: np.dtype[Any] | None) -> np.dtype[Any]:
    if found.kind not in "biufc":
        raise damaged(path, f"holds values of type {found}, expected numbers", "save a matrix of numbers")
    if asked is None:
        return computed_dtype(found)
    require_imaginary(found, asked, str(path))
    return asked


def _value_field(dtype: np.dtype[Any]) -> str:
    return {"b": "pattern", "f": "real", "c": "complex"}.get(dtype.kind, "integer")
