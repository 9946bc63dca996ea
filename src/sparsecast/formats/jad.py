"""JAD: rows sorted by length, their first entries stored together, then their second ones, and so on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats import FORMATS
from sparsecast.formats.sell import sort_rows
from sparsecast.formats.storage_format import Integers, StorageFormat
from sparsecast.system.jit import njit
from sparsecast.system.parallel import balanced_parts_by, in_parts

_ONE = np.uint64(1)


@FORMATS.register("jad")
@dataclass(frozen=True)
class JAD(StorageFormat):
    """Jagged diagonals: the j-th one holds the j-th entry of every row that has one; nothing is padded.

    Rows are sorted by descending length, stably, so that each diagonal covers the first stored rows.

    Sources: Saad (2003), Iterative Methods for Sparse Linear Systems, section 3.4; Wang, Gu, Li (2017), whose
    models forecast it on GPUs.
    """

    name: ClassVar[str] = "jad"
    counts_row_ends: ClassVar[bool] = False

    #: First entry of each diagonal, and the number of entries: shape (longest row + 1,).
    diagonal_starts: NDArray[np.int64]
    indices: NDArray[Any]  # shape (nnz,): the entry of stored row i in diagonal j is at its start + i
    data: NDArray[Any]  # shape (nnz,)
    permutation: NDArray[Any]  # the row of the matrix for each stored row: shape (rows,)

    @classmethod
    def from_csr(cls, A: csr_array[Any]) -> Self:
        rows, nnz = A.shape[0], int(A.indptr[-1])
        entry_bytes = A.data.itemsize + A.indices.itemsize
        cls.refuse_excess(nnz, nnz, nnz * entry_bytes + rows * A.indices.itemsize)
        row_lengths = np.diff(A.indptr)
        permutation = np.empty(rows, dtype=A.indices.dtype)
        sort_rows(row_lengths, max(rows, 1), permutation)
        # The first entry of each diagonal and their number.
        counts = np.bincount(row_lengths, minlength=1)
        diagonal_starts = np.zeros(len(counts), dtype=np.int64)
        # Diagonal j has an entry of every row that is longer than j.
        np.cumsum(counts[::-1].cumsum()[-2::-1], out=diagonal_starts[1:])
        del row_lengths
        indices, data = cls.empty(nnz, A)
        arrays = (A.indptr, A.indices, A.data, permutation, diagonal_starts, indices, data)
        reaching = np.diff(diagonal_starts)
        bounds = balanced_parts_by(lambda place: int(np.minimum(reaching, place).sum()), rows)
        in_parts(_fill_diagonals, arrays, bounds)
        return cls(A.shape, nnz, diagonal_starts, indices, data, permutation)

    @classmethod
    def predicted_bytes(cls, blocks: RowBlocks, value_bytes: int, index_bytes: int, **how: Any) -> Integers:
        starts = 8 * (blocks.row_length_max + 1)
        return blocks.nnz * (value_bytes + index_bytes) + blocks.rows * index_bytes + starts


def sorted_lengths(diagonal_starts: NDArray[np.int64], rows: int) -> NDArray[np.int64]:
    """Return the length of each stored row, longest first."""
    reaching = np.concatenate(([rows], np.diff(diagonal_starts), [0]))  # rows of at least 0, 1, ... entries
    exactly = reaching[:-1] - reaching[1:]
    return np.repeat(np.arange(len(exactly))[::-1], exactly[::-1])


@njit(nogil=True, cache=True)
def _fill_diagonals(
    indptr, indices, data, permutation, diagonal_starts, diagonal_indices, diagonal_data, first, last
):
    for place in range(first, last):
        row = permutation[place]
        start = indptr[row]
        for j in range(indptr[row + _ONE] - start):
            k = diagonal_starts[j] + place
            diagonal_indices[k] = indices[start + j]
            diagonal_data[k] = data[start + j]
