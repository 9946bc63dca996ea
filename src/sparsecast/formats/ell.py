"""ELL: every row padded to the length of the longest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.formats import FORMATS
from sparsecast.formats.base import StorageFormat
from sparsecast.matrices.row_blocks import RowBlocks


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
    unstreamed: ClassVar[tuple[str, ...]] = ("row_lengths",)

    indices: NDArray[Any]
    data: NDArray[Any]
    row_lengths: NDArray[Any]

    @classmethod
    def from_csr(cls, A: csr_array[Any]) -> Self:
        """Return `A` padded to its longest row.

        Raises
        ------
        PaddingError, MatrixSizeError
            If the padded matrix would be larger than MAX_PADDING_FACTOR allows, or than memory.
        """
        row_lengths = np.diff(A.indptr)
        width = int(row_lengths.max(initial=0))
        stored, nnz = A.shape[0] * width, int(A.indptr[-1])
        cls.refuse_excess(nnz, stored, stored * (A.data.itemsize + A.indices.itemsize))
        indices = np.empty((A.shape[0], width), dtype=A.indices.dtype)
        data = np.empty((A.shape[0], width), dtype=A.data.dtype)
        pad_rows(A.indptr, A.indices, A.data, indices, data)
        return cls(A.shape, nnz, indices, data, row_lengths)

    def to_csr(self) -> csr_array[Any]:
        """Return the matrix without its padding."""
        indptr = np.zeros(self.shape[0] + 1, dtype=self.row_lengths.dtype)
        np.cumsum(self.row_lengths, out=indptr[1:])
        kept = np.arange(self.data.shape[1]) < self.row_lengths[:, None]
        return csr_array((self.data[kept], self.indices[kept], indptr), shape=self.shape)

    @classmethod
    def stored_entries(cls, blocks: RowBlocks) -> NDArray[np.int64]:
        """Return rows times the longest row of each block."""
        return blocks.rows * blocks.row_length_max

    @classmethod
    def predicted_bytes(cls, blocks: RowBlocks, value_bytes: int, index_bytes: int) -> NDArray[np.int64]:
        """Return the size in bytes of each block."""
        return cls.stored_entries(blocks) * (value_bytes + index_bytes) + blocks.rows * index_bytes


@numba.njit(nogil=True, cache=True)
def pad_rows(indptr, indices, data, padded_indices, padded_data):  # type: ignore[no-untyped-def]
    """Copy the first entries of each CSR row into the rows of two padded arrays of one width."""
    rows, width = padded_indices.shape
    for i in range(rows):
        start = indptr[i]
        length = min(indptr[i + 1] - start, width)
        for j in range(length):
            padded_indices[i, j] = indices[start + j]
            padded_data[i, j] = data[start + j]
        filler = indices[start + length - 1] if length > 0 else 0
        for j in range(length, width):
            padded_indices[i, j] = filler
            padded_data[i, j] = 0
