"""ELL: every row padded to the length of the longest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats import FORMATS
from sparsecast.formats.storage_format import StorageFormat
from sparsecast.system.jit import njit
from sparsecast.system.parallel import equal_parts, in_parts, threads_for

_U64 = np.uint64
_ONE = _U64(1)


@FORMATS.register("ell")
@dataclass(frozen=True)
class ELL(StorageFormat):
    """A dense array of columns and one of values, as wide as the longest row.

    The arrays lie row by row, the order in which a processor streams them; a device whose threads take a
    row each stores them column by column. Padding repeats a column of its own row, or column 0 in an
    empty row, with the value 0: a non-finite x there gives NaN, as it does in other libraries.

    Attributes
    ----------
    indices : integer array of shape (rows, width)
    data : array of shape (rows, width)
    row_lengths : integer array of shape (rows,)
        Entries of each row that are not padding; only `to_csr` reads it.
    """

    name: ClassVar[str] = "ell"
    counts_row_ends: ClassVar[bool] = False
    unstreamed: ClassVar[tuple[str, ...]] = ("row_lengths",)

    indices: NDArray[Any]
    data: NDArray[Any]
    row_lengths: NDArray[Any]

    @classmethod
    def from_csr(cls, A: csr_array[Any]) -> Self:
        """Return `A` padded to its longest row."""
        row_lengths = np.diff(A.indptr)
        width = int(row_lengths.max(initial=0))
        stored, nnz = A.shape[0] * width, int(A.indptr[-1])
        cls.refuse_excess(nnz, stored, stored * (A.data.itemsize + A.indices.itemsize))
        return cls(A.shape, nnz, *padded_rows(A, width), row_lengths)

    def to_csr(self) -> csr_array[Any]:
        """Return the matrix without its padding."""
        A = self.empty_csr(np.pad(self.row_lengths, (1, 0)))
        arrays = (A.indptr, A.indices, A.data, self.indices, self.data)
        in_parts(_take_rows, arrays, equal_parts(self.shape[0], threads_for(self.data.size)))
        return A

    @classmethod
    def stored_entries(cls, blocks: RowBlocks) -> NDArray[np.int64]:
        """Return rows times the longest row of each block."""
        return blocks.rows * blocks.row_length_max

    @classmethod
    def predicted_bytes(cls, blocks: RowBlocks, value_bytes: int, index_bytes: int) -> NDArray[np.int64]:
        """Return the size in bytes of each block."""
        return cls.stored_entries(blocks) * (value_bytes + index_bytes) + blocks.rows * index_bytes


def padded_rows(A: csr_array[Any], width: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the first entries of each row of `A` in two padded arrays of this width."""
    indices, data = StorageFormat.empty((A.shape[0], width), A)
    arrays = (A.indptr, A.indices, A.data, indices, data)
    in_parts(_pad_rows, arrays, equal_parts(A.shape[0], threads_for(data.size)))
    return indices, data


@njit(nogil=True, cache=True)
def _pad_rows(indptr, indices, data, padded_indices, padded_data, first, last):  # type: ignore[no-untyped-def]
    width = _U64(padded_indices.shape[1])
    for i in range(first, last):
        start = _U64(indptr[i])
        length = min(_U64(indptr[i + _ONE]) - start, width)
        filler = indices.dtype.type(0)
        for j in range(length):
            filler = indices[start + j]
            padded_indices[i, j] = filler
            padded_data[i, j] = data[start + j]
        for j in range(length, width):
            padded_indices[i, j] = filler
            padded_data[i, j] = 0


@njit(nogil=True, cache=True)
def _take_rows(indptr, indices, data, padded_indices, padded_data, first, last):  # type: ignore[no-untyped-def]
    for i in range(first, last):
        start = _U64(indptr[i])
        for j in range(_U64(indptr[i + _ONE]) - start):
            indices[start + j] = padded_indices[i, j]
            data[start + j] = padded_data[i, j]
