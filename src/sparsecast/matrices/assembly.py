"""Triplets, packed columns and SciPy's other formats turned into one canonical CSR.

The kernels see indices as unsigned integers, because signed ones cost a wrap-around test on every load.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from sparsecast.integers import index_dtype, unsigned

Array = npt.NDArray[Any]

# Rows up to the first length are sorted by counting smaller columns, which has no branch to mispredict; up
# to the second by insertion; longer ones by a merge sort. All are stable.
_RANKED_LENGTH = 16
_INSERTION_LENGTH = 48

#: How an entry off the diagonal also stands at the transposed place, by the symmetry that a file names: not
#: at all (0), as it is (1), with the other sign (-1) or conjugated (HERMITIAN).
MIRRORS = {"general": 0, "symmetric": 1, "skew-symmetric": -1, "hermitian": 2}
HERMITIAN = MIRRORS["hermitian"]

# Integers of larger magnitude need not survive in a float64.
_LARGEST_EXACT = 2.0**53


@dataclass(slots=True)
class Compressed:
    """Arrays of a CSR matrix whose rows may still be unsorted or hold duplicates.

    Attributes
    ----------
    indptr : ndarray of int32 or int64, shape (rows + 1,)
        Where each row begins.
    indices : ndarray of the same type, shape (nnz,)
        Column numbers from 0.
    data : ndarray of shape (nnz,)
        Values, of a type that is computed with.
    shape : tuple of int
        Rows and columns.
    """

    indptr: Array
    indices: Array
    data: Array
    shape: tuple[int, int]


def from_triplets(rows: Array, cols: Array, values: Array, shape: tuple[int, int], mirror: int) -> Compressed:
    """Compress triplets by rows, keeping the order of the entries within a row.

    Parameters
    ----------
    rows, cols : ndarray of int32 or int64, shape (stored,)
        Row and column numbers from 0, both of one type and inside `shape`; the caller has checked.
    values : ndarray of shape (stored,)
        One value a triplet.
    shape : tuple of int
        Rows and columns.
    mirror : int
        One of MIRRORS. 0: the triplets are the matrix. Otherwise each one off the diagonal also stands at the
        transposed place: 1 as it is, -1 with the other sign, HERMITIAN conjugated.

    Returns
    -------
    Compressed
        Entries in the order of the triplets: sorted where the triplets came sorted by rows or columns.
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
    return Compressed(indptr, indices, data, shape)


def from_packed(values: Array, shape: tuple[int, int], mirror: int) -> Compressed:
    """Compress a dense matrix given column by column, leaving its zeros out.

    Parameters
    ----------
    values : ndarray, one-dimensional
        The columns one after the other: whole ones where `mirror` is 0, from below the diagonal where it is
        -1, from the diagonal down otherwise.
    shape : tuple of int
        Rows and columns.
    mirror : int
        As for `from_triplets`.
    """
    width = index_dtype(*shape, len(values) * (2 if mirror else 1))
    indptr = np.zeros(shape[0] + 1, dtype=width)
    _count_packed(values, shape[0], shape[1], mirror, unsigned(indptr[1:]))
    np.cumsum(indptr, out=indptr, dtype=width)
    indices = np.empty(int(indptr[-1]), dtype=width)
    data = np.empty(len(indices), dtype=values.dtype)
    slots = unsigned(indptr[:-1].copy())
    _place_packed(values, shape[0], shape[1], mirror, slots, unsigned(indices), data)
    return Compressed(indptr, indices, data, shape)


def canonicalise(matrix: Compressed) -> int:
    """Sort the rows of `matrix` and sum its duplicates, in place.

    Returns
    -------
    int
        Entries that were added to another one and are gone.
    """
    if not _sort_rows(unsigned(matrix.indptr), unsigned(matrix.indices), matrix.data):
        return 0
    before = len(matrix.indices)
    kept = int(_sum_duplicates(unsigned(matrix.indptr), unsigned(matrix.indices), matrix.data))
    matrix.indices, matrix.data = matrix.indices[:kept].copy(), matrix.data[:kept].copy()
    return before - kept


def count_values(values: Array) -> tuple[int, int, int]:
    """Return how many `values` are 0, are NaN or infinite, and have a real part beyond 2**53."""
    zeros, nonfinite, large = _count_values(values)
    return int(zeros), int(nonfinite), int(large)


@numba.njit(cache=True)
def _mirrored(value, mirror):  # type: ignore[no-untyped-def]
    """Return the value at the transposed place; no product, in which infinity times 0 would become NaN."""
    if mirror == HERMITIAN:
        return np.conj(value)
    return value if mirror > 0 else -value


@numba.njit(cache=True)
def _count_triplets(rows, cols, mirror, lengths):  # type: ignore[no-untyped-def]
    for k in range(rows.size):
        lengths[rows[k]] += 1
    if mirror != 0:
        for k in range(rows.size):
            if rows[k] != cols[k]:
                lengths[cols[k]] += 1


@numba.njit(cache=True)
def _place_triplets(rows, cols, values, mirror, slots, indices, data):  # type: ignore[no-untyped-def]
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
            data[slot] = _mirrored(values[k], mirror)


@numba.njit(cache=True)
def _count_packed(values, rows, cols, mirror, lengths):  # type: ignore[no-untyped-def]
    position = 0
    for column in range(cols):
        first = 0 if mirror == 0 else (column if mirror > 0 else column + 1)
        for row in range(first, rows):
            if values[position] != 0:
                lengths[row] += 1
                if mirror != 0 and row != column:
                    lengths[column] += 1
            position += 1


@numba.njit(cache=True)
def _place_packed(values, rows, cols, mirror, slots, indices, data):  # type: ignore[no-untyped-def]
    position = 0
    for column in range(cols):
        first = 0 if mirror == 0 else (column if mirror > 0 else column + 1)
        for row in range(first, rows):
            value = values[position]
            position += 1
            if value == 0:
                continue
            slot = slots[row]
            slots[row] = slot + 1
            indices[slot] = column
            data[slot] = value
            if mirror != 0 and row != column:
                slot = slots[column]
                slots[column] = slot + 1
                indices[slot] = row
                data[slot] = _mirrored(value, mirror)


@numba.njit(cache=True)
def _sort_by_rank(columns, values, ranked_columns, ranked_values):  # type: ignore[no-untyped-def]
    for k in range(columns.size):
        column = columns[k]
        rank = np.uint64(0)
        for j in range(k):
            rank += np.uint64(columns[j] <= column)
        for j in range(k + 1, columns.size):
            rank += np.uint64(columns[j] < column)
        ranked_columns[rank] = column
        ranked_values[rank] = values[k]
    for k in range(columns.size):
        columns[k] = ranked_columns[k]
        values[k] = ranked_values[k]


@numba.njit(cache=True)
def _sort_by_insertion(columns, values):  # type: ignore[no-untyped-def]
    for k in range(1, columns.size):
        column, value = columns[k], values[k]
        hole = k
        while hole > 0 and columns[hole - 1] > column:
            columns[hole] = columns[hole - 1]
            values[hole] = values[hole - 1]
            hole -= 1
        columns[hole] = column
        values[hole] = value


@numba.njit(cache=True)
def _sort_rows(indptr, indices, data):  # type: ignore[no-untyped-def]
    """Sort every row that is not sorted yet, stably; return whether any row holds a column twice."""
    twice = False
    ranked_columns = np.empty(_RANKED_LENGTH, dtype=indices.dtype)
    ranked_values = np.empty(_RANKED_LENGTH, dtype=data.dtype)
    for row in range(indptr.size - 1):
        begin, end = np.int64(indptr[row]), np.int64(indptr[row + 1])
        ascending = True
        for k in range(begin + 1, end):
            if indices[k] <= indices[k - 1]:
                ascending = False
        if ascending:
            continue
        if end - begin <= _RANKED_LENGTH:
            _sort_by_rank(indices[begin:end], data[begin:end], ranked_columns, ranked_values)
        elif end - begin <= _INSERTION_LENGTH:
            _sort_by_insertion(indices[begin:end], data[begin:end])
        else:
            order = np.argsort(indices[begin:end], kind="mergesort")
            indices[begin:end] = indices[begin:end][order]
            data[begin:end] = data[begin:end][order]
        for k in range(begin + 1, end):
            if indices[k] == indices[k - 1]:
                twice = True
    return twice


@numba.njit(cache=True)
def _sum_duplicates(indptr, indices, data):  # type: ignore[no-untyped-def]
    """Move the entries of sorted rows together, summing equal columns; return how many remain."""
    kept = 0
    begin = np.int64(indptr[0])
    for row in range(indptr.size - 1):
        end = np.int64(indptr[row + 1])
        first = kept
        for k in range(begin, end):
            if kept > first and indices[kept - 1] == indices[k]:
                data[kept - 1] += data[k]
            else:
                indices[kept] = indices[k]
                data[kept] = data[k]
                kept += 1
        indptr[row + 1] = kept
        begin = end
    return kept


@numba.njit(cache=True)
def _count_values(values):  # type: ignore[no-untyped-def]
    zeros = nonfinite = large = 0
    for k in range(values.size):
        value = values[k]
        zeros += value == 0
        nonfinite += not np.isfinite(value)
        large += abs(value.real) > _LARGEST_EXACT  # integers are real: the modulus of others is not needed
    return zeros, nonfinite, large
