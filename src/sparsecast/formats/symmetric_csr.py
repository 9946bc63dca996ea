"""Symmetric CSR: one triangle of a symmetric matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.errors import SymmetryError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.value_scan import words
from sparsecast.formats import FORMATS
from sparsecast.formats.storage_format import StorageFormat
from sparsecast.system.jit import njit
from sparsecast.system.parallel import balanced_parts, in_parts

_ZERO, _ONE, _STEP = np.uint64(0), np.uint64(1), np.uint32(1)


@FORMATS.register("symmetric_csr")
@dataclass(frozen=True)
class SymmetricCSR(StorageFormat):
    """The diagonal as a dense vector and the entries below it as CSR: half the bytes of the matrix.

    Only for whole matrices that equal their transpose bit by bit, with sorted rows without duplicates; a row
    block has no mirror image. Each entry below the diagonal is multiplied twice, for its own row and for that
    of its mirror image.

    Attributes
    ----------
    starts : integer array of shape (rows + 1,)
        The first entry of each row below the diagonal, and their number.
    indices : integer array of shape (entries below the diagonal,)
    data : array of shape (entries below the diagonal,)
    diagonal : array of shape (rows,)
        0 where the matrix has no entry. Such a row reads an x that is not in the matrix: where that is not
        finite, the row is NaN.
    """

    name: ClassVar[str] = "symmetric_csr"
    counts_row_ends: ClassVar[bool] = False
    benchmark_kinds: ClassVar[tuple[str, ...]] = ("symmetric", "mirrored")
    predicted_from_rows: ClassVar[bool] = False
    pads_with_own_columns: ClassVar[bool] = False

    starts: NDArray[Any]
    indices: NDArray[Any]
    data: NDArray[Any]
    diagonal: NDArray[Any]

    @classmethod
    def from_csr(cls, A: csr_array[Any]) -> Self:
        """Return the lower triangle of `A`, after every entry above the diagonal was compared with it."""
        rows, cols = A.shape
        if rows != cols:
            raise SymmetryError(
                f"a matrix of {rows} x {cols}: expected a square one for symmetric CSR; use another format"
            )
        nnz = int(A.indptr[-1])
        matrix, bounds = (A.indptr, A.indices[:nnz], A.data), balanced_parts(A.indptr)
        starts = np.zeros(rows + 1, dtype=A.indptr.dtype)
        diagonal = np.zeros(rows, dtype=A.data.dtype)
        on_diagonal, odd = np.zeros((2, rows), dtype=np.bool_)
        in_parts(_find_diagonal, (*matrix, starts, diagonal, on_diagonal, odd), bounds)
        _refuse_first(odd, lambda row: f"row {row} is not sorted or holds a column twice")
        bits, heads = words(A.data[:nnz]), A.indptr[:-1] + starts[1:] + on_diagonal
        in_parts(_find_unmirrored, (*matrix[:2], bits[0], bits[-1], heads, odd), bounds)
        _refuse_first(odd, lambda row: _unmirrored(A, row))
        np.cumsum(starts, out=starts)
        below = int(starts[-1])
        entry_bytes = A.data.itemsize + A.indices.itemsize
        cls.refuse_excess(nnz, below + rows, below * entry_bytes)
        triangle = cls.empty(below, A)
        in_parts(_copy_below, (*matrix, starts, *triangle), bounds)
        return cls(A.shape, nnz, starts, *triangle, diagonal)

    @classmethod
    def can_hold(cls, blocks: RowBlocks) -> NDArray[np.bool_]:
        """Tell whether a block is the whole of a symmetric matrix, and not much emptier than its diagonal."""
        is_whole = (blocks.rows == blocks.matrix.rows) & (blocks.matrix.symmetry.triangle_nnz is not None)
        return np.asarray(is_whole & super().can_hold(blocks))

    @classmethod
    def stored_entries(cls, blocks: RowBlocks) -> NDArray[np.int64]:
        return cls._below(blocks) + blocks.rows

    @classmethod
    def predicted_bytes(cls, blocks: RowBlocks, value_bytes: int, index_bytes: int) -> NDArray[np.int64]:
        by_rows = (blocks.rows + 1) * index_bytes + blocks.rows * value_bytes
        return cls._below(blocks) * (value_bytes + index_bytes) + by_rows

    @staticmethod
    def _below(blocks: RowBlocks) -> NDArray[np.int64]:
        triangle = blocks.matrix.symmetry.triangle_nnz
        # Half the entries for any other block.
        return blocks.nnz // 2 if triangle is None else blocks.nnz - np.minimum(triangle, blocks.nnz)

    @classmethod
    def refuse_unsuited(cls, blocks: RowBlocks, value_bytes: int, index_bytes: int) -> None:
        if blocks.matrix.symmetry.triangle_nnz is None:
            _refuse("a matrix that differs from its transpose, or whose rows are not sorted")


def _refuse(problem: str) -> None:
    raise SymmetryError(
        f"{problem}: expected a matrix that equals its transpose for symmetric CSR; use another format"
    )


def _refuse_first(odd: NDArray[np.bool_], what: Callable[[int], str]) -> None:
    if odd.any():
        _refuse(what(int(odd.argmax())))


def _unmirrored(A: csr_array[Any], row: int) -> str:
    """Name the first place right of the diagonal in `row` that differs from its mirror image."""
    in_row = {int(A.indices[k]): A.data[k] for k in range(A.indptr[row], A.indptr[row + 1])}
    below = np.flatnonzero(A.indices[: A.indptr[-1]] == row)
    rows = np.searchsorted(A.indptr, below, side="right") - 1
    in_column = dict(zip(rows.tolist(), A.data[below], strict=True))
    place = next(
        column
        for column in sorted(in_row.keys() | in_column.keys())
        if column > row and _bits(in_row.get(column)) != _bits(in_column.get(column))
    )
    value, mirrored = in_row.get(place, "nothing"), in_column.get(place, "nothing")
    return f"{value} at ({row}, {place}) and {mirrored} at ({place}, {row})"


def _bits(value: np.generic | None) -> bytes | None:
    return None if value is None else value.tobytes()


@njit(nogil=True, cache=True)
def _find_diagonal(  # type: ignore[no-untyped-def]
    indptr, indices, data, starts, diagonal, on_diagonal, odd, first, last
):
    """Count the entries below the diagonal behind each row's place in `starts`; mark rows that descend."""
    for i in range(first, last):
        start, end = indptr[i], indptr[i + _ONE]
        below, descents = _ZERO, _ZERO
        for k in range(start, end):
            column = np.uint64(indices[k])
            below += np.uint64(column < i)
            if column == i:
                diagonal[i] = data[k]
                on_diagonal[i] = True
            before = np.uint64(indices[max(k, start + _ONE) - _ONE])
            descents += np.uint64(k > start) & np.uint64(column <= before)
        starts[i + _ONE] = below
        odd[i] = descents != _ZERO


@njit(nogil=True, cache=True)
def _find_unmirrored(indptr, indices, head, tail, heads, odd, first, last):  # type: ignore[no-untyped-def]
    """Mark the rows first to last - 1 whose entries above the diagonal differ from those of their column.

    Rows are traversed in order, so the entries of a column below the diagonal appear in the order of the
    mirrored row. `heads` points to the first entry of each row above the diagonal; `head` and `tail` are the
    first and the last word of each value.
    """
    for i in range(first, np.uint64(len(indptr)) - _ONE):
        k, end = np.uint64(indptr[i]), np.uint64(indptr[i + _ONE])
        if k < end and np.uint64(indices[k]) < first:
            k = _first_from(indices, first, k, end)
        limit = min(last, i)
        while k < end and np.uint64(indices[k]) < limit:
            j = np.uint64(indices[k])
            place = heads[j]
            if place == indptr[j + _ONE]:
                odd[j] = True
            else:
                same = (head[place] == head[k]) & (tail[place] == tail[k])
                odd[j] |= (np.uint64(indices[place]) != i) | (not same)
                heads[j] = place + _STEP
            k += _ONE
    for row in range(first, last):
        odd[row] |= heads[row] != indptr[row + _ONE]


@njit(nogil=True, cache=True)
def _first_from(indices, column, low, high):  # type: ignore[no-untyped-def]
    """Return the first entry from `low` on, before `high`, in a column of at least `column`."""
    while low < high:
        middle = (low + high) >> _ONE
        if np.uint64(indices[middle]) < column:
            low = middle + _ONE
        else:
            high = middle
    return low


@njit(nogil=True, cache=True)
def _copy_below(  # type: ignore[no-untyped-def]
    indptr, indices, data, starts, triangle_indices, triangle_data, first, last
):
    for i in range(first, last):
        shift = np.uint64(indptr[i]) - np.uint64(starts[i])
        for place in range(np.uint64(starts[i]), np.uint64(starts[i + _ONE])):
            triangle_indices[place] = indices[place + shift]
            triangle_data[place] = data[place + shift]
