"""What formats share that keep one triangle of a matrix: the check, and for which matrices they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.errors import SymmetryError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.symmetry import changed_signs, likely_kinds, mirrors
from sparsecast.features.value_scan import words
from sparsecast.formats.storage_format import StorageFormat
from sparsecast.system.integers import first_from
from sparsecast.system.jit import njit
from sparsecast.system.parallel import balanced_parts, in_parts

_ZERO, _ONE = np.uint64(0), np.uint64(1)


@dataclass(frozen=True)
class MirroredFormat(StorageFormat):
    """A format that keeps what is on and below the diagonal, and multiplies what is below it twice.

    Only for whole matrices that equal their transpose, its conjugate or its negative, with sorted rows
    without duplicates; a row block has no mirror image. Values agree bit by bit, but for the signs that
    differ and those of zeros there.
    """

    adds_at_columns: ClassVar[bool] = True
    counts_row_ends: ClassVar[bool] = False
    predicted_from_rows: ClassVar[bool] = False
    pads_with_own_columns: ClassVar[bool] = False
    relies_on: ClassVar[tuple[str, ...]] = ("symmetry",)

    kind: str  # how values mirror those below the diagonal: one of the `kind` of the features of symmetry

    @classmethod
    def can_hold(cls, blocks: RowBlocks) -> NDArray[np.bool_]:
        """Tell whether a block is the whole of a matrix with a symmetry, and not much emptier than stored."""
        is_whole = (blocks.rows == blocks.matrix.rows) & (blocks.matrix.symmetry.triangle_nnz is not None)
        return np.asarray(is_whole & super().can_hold(blocks))

    @classmethod
    def refuse_unsuited(cls, blocks: RowBlocks, value_bytes: int, index_bytes: int) -> None:
        if blocks.matrix.symmetry.triangle_nnz is None:
            raise cls._refusal("a matrix that differs from its transpose, or whose rows are not sorted")
        super().refuse_unsuited(blocks, value_bytes, index_bytes)

    @classmethod
    def kind_of(cls, A: csr_array[Any], counts: NDArray[Any]) -> str:
        """Return the kind of a matrix, after every entry above the diagonal was compared with its mirror.

        `counts`, of shape (rows,), receives the entries of each row on and below the diagonal. A
        SymmetryError says that there is no kind, and names the first entry that differs.
        """
        rows, cols = A.shape
        if rows != cols:
            raise cls._refusal(f"a matrix of {rows} x {cols}")
        nnz, bounds = int(A.indptr[-1]), balanced_parts(A.indptr)
        pattern, odd = (A.indptr, A.indices[:nnz]), np.zeros(rows, dtype=np.bool_)
        in_parts(_count_triangle, (*pattern, counts, odd), bounds)
        if odd.any():
            raise cls._refusal(f"row {odd.argmax()} is not sorted or holds a column twice")
        kinds, values = likely_kinds(*pattern, A.data[:nnz]) or ["symmetric"], words(A.data[:nnz])
        for kind in kinds:
            signs, heads = changed_signs(kind, A.dtype), A.indptr[:-1] + counts
            odd[:] = False
            in_parts(_find_unmirrored, (*pattern, values, signs, heads, odd), bounds)
            if not odd.any():
                return kind
        # The first place of the row, from the diagonal on, that differs from its mirror image.
        row = int(odd.argmax())
        in_row = {int(A.indices[k]): np.uint64(k) for k in range(A.indptr[row], A.indptr[row + 1])}
        below = np.flatnonzero(A.indices[:nnz] == row)
        owners = np.searchsorted(A.indptr, below, side="right") - 1
        in_column = dict(zip(owners.tolist(), below.astype(np.uint64), strict=True))
        for place in sorted(in_row.keys() | in_column.keys()):
            is_in_both = place in in_row and place in in_column
            if place >= row and not (is_in_both and mirrors(values, signs, in_column[place], in_row[place])):
                break
        value = A.data[in_row[place]] if place in in_row else "nothing"
        mirrored = A.data[in_column[place]] if place in in_column else "nothing"
        raise cls._refusal(
            f"{value} at ({row}, {place}) and {mirrored} at ({place}, {row}), as no {kind} matrix has them"
        )

    @classmethod
    def _refusal(cls, problem: str) -> SymmetryError:
        return SymmetryError(
            f"{problem}: expected a matrix that equals its transpose, its conjugate or its negative, for "
            f"{cls.name.replace('_', ' ')}; use another format"
        )


@njit(nogil=True, cache=True)
def _count_triangle(indptr, indices, counts, odd, first, last):
    """Count the entries of each row on and below the diagonal; mark rows that descend."""
    for i in range(first, last):
        start, end = indptr[i], indptr[i + _ONE]
        count, descents = _ZERO, _ZERO
        for k in range(start, end):
            column = np.uint64(indices[k])
            count += np.uint64(column <= i)
            before = np.uint64(indices[max(k, start + _ONE) - _ONE])
            descents += np.uint64(k > start) & np.uint64(column <= before)
        counts[i] = count
        odd[i] = descents != _ZERO


@njit(nogil=True, cache=True)
def _find_unmirrored(indptr, indices, words, signs, heads, odd, first, last):
    """Mark the rows first to last - 1 whose entries above the diagonal differ from those of their column.

    Rows are traversed in order, so the entries of a column below the diagonal appear in the order of the
    mirrored row. `heads` points to the first entry of each row above the diagonal.
    """
    for i in range(first, np.uint64(len(indptr)) - _ONE):
        k, end = np.uint64(indptr[i]), np.uint64(indptr[i + _ONE])
        if k < end and np.uint64(indices[k]) < first:
            k = first_from(indices, first, k, end)
        limit = min(last, i)
        while k < end and np.uint64(indices[k]) < limit:
            j = np.uint64(indices[k])
            place = np.uint64(heads[j])
            if place == np.uint64(indptr[j + _ONE]):
                odd[j] = True
            else:
                same = mirrors(words, signs, place, k)
                odd[j] |= (np.uint64(indices[place]) != i) | (not same)
                heads[j] = place + _ONE
            k += _ONE
        if i < last and k < end and np.uint64(indices[k]) == i:
            odd[i] |= not mirrors(words, signs, k, k)
    for row in range(first, last):
        odd[row] |= heads[row] != indptr[row + _ONE]
