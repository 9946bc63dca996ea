"""Converts triplets and packed columns of a file to CSR.

The kernels see indices as unsigned integers, because signed ones cost a wrap-around test on every load.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from sparsecast.matrices.sources import check_memory, damaged
from sparsecast.matrices.values import require_imaginary
from sparsecast.system.integers import index_dtype, unsigned
from sparsecast.system.jit import njit

Array = npt.NDArray[Any]

# Longer rows are sorted by merging, others by insertion.
_INSERTION_LENGTH = 48

#: How an off-diagonal entry is repeated at the transposed place, by the symmetry of the file: not at all (0),
#: as it is (1), negated (-1) or conjugated (HERMITIAN).
MIRRORS = {"general": 0, "symmetric": 1, "skew-symmetric": -1, "hermitian": 2}
HERMITIAN = MIRRORS["hermitian"]


class Contents(NamedTuple):
    """Contents of a file: rows may be unsorted or hold duplicates; `field` and `symmetry` as in FileFacts.

    `triangle_nnz` is the number of stored triplets of a symmetric matrix, None of any other one.
    """

    matrix: csr_array[Any]
    field: str
    symmetry: str = "general"
    notes: tuple[str, ...] = ()
    triangle_nnz: int | None = None


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a text file."""

    field: str
    symmetry: str
    shape: tuple[int, int]
    stored: int

    @property
    def mirror(self) -> int:
        return MIRRORS[self.symmetry]

    @property
    def held(self) -> np.dtype[Any]:
        return np.dtype(np.complex128 if self.field == "complex" else np.float64)

    @property
    def whole(self) -> int:
        """Greatest number of entries of the matrix, with the mirrored ones."""
        return self.stored * (2 if self.mirror else 1)

    def value_type(self, path: Path, dtype: np.dtype[Any] | None) -> np.dtype[Any]:
        value_type = self.held if dtype is None else dtype
        require_imaginary(self.held, value_type, str(path))
        return value_type

    def check_shape(self, path: Path) -> None:
        """Refuse a symmetric matrix that is not square, and entries without rows or columns."""
        rows, cols = self.shape
        if self.mirror and rows != cols:
            problem = f"is called {self.symmetry} and has {rows} rows and {cols} columns"
            raise damaged(path, problem, "correct the sizes or call it general")
        if self.stored and not min(self.shape):
            raise damaged(path, f"claims {self.stored} entries in a matrix of {rows} rows, {cols} columns")

    def check_memory(self, path: Path, value_type: np.dtype[Any], read_bytes: int) -> None:
        """Refuse the matrix if the memory cannot hold the CSR arrays and what is read at the same time.

        `read_bytes` counts all other bytes than the stored values.
        """
        rows, cols = self.shape
        read_value = max(value_type.itemsize, self.held.itemsize)
        index = index_dtype(rows, cols, self.whole).itemsize
        needed = read_bytes + self.stored * read_value + self.whole * (read_value + index)
        what = f"a matrix of {rows} rows, {cols} columns and {self.stored} stored entries"
        check_memory(path, needed + 2 * index * (rows + 1), what)

    def contents(self, rows: Array, cols: Array, values: Array, notes: tuple[str, ...] = ()) -> Contents:
        """Return the matrix of the stored triplets; a note says if its diagonal contradicts its symmetry."""
        diagonal = values[rows == cols] if self.mirror in (-1, HERMITIAN) else values[:0]
        if self.mirror == -1 and np.any(diagonal != 0):
            notes += ("is called skew-symmetric and holds a diagonal that is not 0, kept as it is",)
        if self.mirror == HERMITIAN and np.any(diagonal.imag != 0):
            notes += ("is called hermitian and holds a diagonal that is not real, kept as it is",)
        matrix = from_triplets(rows, cols, values, self.shape, self.mirror)
        is_symmetric = self.mirror == MIRRORS["symmetric"]
        return Contents(matrix, self.field, self.symmetry, notes, len(values) if is_symmetric else None)


def from_triplets(
    rows: Array, cols: Array, values: Array, shape: tuple[int, int], mirror: int = 0
) -> csr_array[Any]:
    """Compress triplets by rows; the entries of a row keep their order.

    `rows` and `cols` count from 0, are both of one type, int32 or int64, and were checked against `shape`.
    `mirror` is one of MIRRORS: how an off-diagonal triplet is repeated at the transposed place.
    """
    width = index_dtype(*shape, len(rows) * (2 if mirror else 1))
    rows, cols = unsigned(rows), unsigned(cols)
    indptr = np.zeros(shape[0] + 1, dtype=width)
    _count_triplets(rows, cols, mirror, unsigned(indptr[1:]))
    np.cumsum(indptr, out=indptr, dtype=width)
    indices = np.empty(int(indptr[-1]), dtype=width)
    data = np.empty(len(indices), dtype=values.dtype)
    slots = unsigned(indptr[:-1].copy())
    _place_triplets(rows, cols, values, mirror, slots, unsigned(indices), data)
    return csr_array((data, indices, indptr), shape=shape)


def from_packed(values: Array, shape: tuple[int, int], mirror: int = 0) -> csr_array[Any]:
    """Compress a dense matrix, given column by column, without its zeros.

    The columns stand one after the other: whole ones where `mirror`, as for `from_triplets`, is 0, from below
    the diagonal where it is -1, from the diagonal down otherwise.
    """
    if mirror:
        columns = np.zeros(shape, dtype=values.dtype)
        columns[np.triu_indices(shape[0], 1 if mirror < 0 else 0)] = values
    else:
        columns = values.reshape(shape[::-1])
    cols, rows = np.nonzero(columns)
    return from_triplets(rows, cols, columns[cols, rows], shape, mirror)


@njit(cache=True)
def _count_triplets(rows, cols, mirror, lengths):
    for k in range(rows.size):
        lengths[rows[k]] += 1
    if mirror != 0:
        for k in range(rows.size):
            if rows[k] != cols[k]:
                lengths[cols[k]] += 1


@njit(cache=True)
def _place_triplets(rows, cols, values, mirror, slots, indices, data):
    for k in range(rows.size):
        row, column = rows[k], cols[k]
        slot = slots[row]
        slots[row] = slot + 1
        indices[slot] = column
        data[slot] = values[k]
        if mirror != 0 and row != column:
            slot = slots[column]
            slots[column] = slot + 1
            indices[slot] = row
            # No product is used, since infinity times 0 would be NaN.
            if mirror == HERMITIAN:
                data[slot] = np.conj(values[k])
            else:
                data[slot] = values[k] if mirror > 0 else -values[k]


@njit(cache=True)
def sort_rows(indptr, indices, data):
    """Sort the rows in place, stably (unlike SciPy): mirrored duplicates are then summed in one order."""
    for row in range(indptr.size - 1):
        begin, end = np.int64(indptr[row]), np.int64(indptr[row + 1])
        if end - begin > _INSERTION_LENGTH:
            order = np.argsort(indices[begin:end], kind="mergesort")
            indices[begin:end] = indices[begin:end][order]
            data[begin:end] = data[begin:end][order]
            continue
        for k in range(begin + 1, end):
            column, value, hole = indices[k], data[k], k
            while hole > begin and indices[hole - 1] > column:
                indices[hole], data[hole] = indices[hole - 1], data[hole - 1]
                hole -= 1
            indices[hole], data[hole] = column, value
