"""ELL: every row padded to the length of the longest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats import FORMATS
from sparsecast.formats.storage_format import Integers, StorageFormat
from sparsecast.system.jit import njit
from sparsecast.system.parallel import equal_parts, in_parts, threads_for

_U64 = np.uint64
_ONE = _U64(1)


@FORMATS.register("ell")
@dataclass(frozen=True)
class ELL(StorageFormat):
    """A dense array of columns and one of values, as wide as the longest row.

    The arrays are stored row by row, as a processor streams them; a device with a thread per row stores them
    column by column. Padding repeats a column of its own row, or column 0 in an empty row, with the value 0:
    a non-finite x there gives NaN, as in other libraries.
    """

    name: ClassVar[str] = "ell"
    counts_row_ends: ClassVar[bool] = False

    indices: NDArray[Any]  # shape (rows, width)
    data: NDArray[Any]  # shape (rows, width)

    @classmethod
    def from_csr(cls, A: csr_array[Any]) -> Self:
        width = int(np.diff(A.indptr).max(initial=0))
        stored, nnz = A.shape[0] * width, int(A.indptr[-1])
        cls.refuse_excess(nnz, stored, stored * (A.data.itemsize + A.indices.itemsize))
        return cls(A.shape, nnz, *padded_rows(A, width))

    @classmethod
    def stored_entries(cls, blocks: RowBlocks, **how: Any) -> Integers:
        return blocks.rows * blocks.row_length_max

    @classmethod
    def predicted_bytes(cls, blocks: RowBlocks, value_bytes: int, index_bytes: int, **how: Any) -> Integers:
        return cls.stored_entries(blocks) * (value_bytes + index_bytes)


def padded_rows(A: csr_array[Any], width: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the first entries of each row of `A` in two padded arrays of this width."""
    indices, data = StorageFormat.empty((A.shape[0], width), A)
    arrays = (A.indptr, A.indices, A.data, indices, data)
    in_parts(_pad_rows, arrays, equal_parts(A.shape[0], threads_for(data.size)))
    return indices, data


@njit(nogil=True, cache=True)
def _pad_rows(indptr, indices, data, padded_indices, padded_data, first, last):
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
