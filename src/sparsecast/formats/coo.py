"""COO: coordinates, ordered by row."""

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
from sparsecast.system.parallel import balanced_parts, in_parts

#: Entries that a processor works on at once. Those of one row add to one sum: each waits for the one before.
_AT_ONCE = 64

_ONE = np.uint64(1)


@FORMATS.register("coo")
@dataclass(frozen=True)
class COO(StorageFormat):
    """A row index, a column index and a value for each non-zero, in the order of the rows: shapes (nnz,)."""

    name: ClassVar[str] = "coo"
    divides_rows: ClassVar[bool] = True

    rows: NDArray[Any]
    cols: NDArray[Any]
    data: NDArray[Any]

    @classmethod
    def from_csr(cls, A: csr_array[Any]) -> Self:
        """Return `A` with its row pointers expanded; columns and values are shared, not copied."""
        nnz = int(A.indptr[-1])
        cls.refuse_excess(nnz, nnz, nnz * A.indices.itemsize)  # the rest is shared
        rows = np.empty(nnz, dtype=A.indices.dtype)
        in_parts(_expand_rows, (A.indptr, rows), balanced_parts(A.indptr))
        return cls(A.shape, nnz, rows, A.indices, A.data)

    @classmethod
    def predicted_bytes(cls, blocks: RowBlocks, value_bytes: int, index_bytes: int, **how: Any) -> Integers:
        return blocks.nnz * (value_bytes + 2 * index_bytes)

    @classmethod
    def shared_bytes(cls, blocks: RowBlocks, value_bytes: int, index_bytes: int, **how: Any) -> Integers:
        """Return the columns and values."""
        return blocks.nnz * (value_bytes + index_bytes)

    @classmethod
    def row_end_work(cls, blocks: RowBlocks, **how: Any) -> dict[str, NDArray[Any]]:
        """Return the mispredicted rows, and the entries of long rows, whose sums wait for one another."""
        return {**super().row_end_work(blocks), "waiting sums": blocks.entries_beyond(_AT_ONCE)}


@njit(nogil=True, cache=True)
def _expand_rows(indptr, rows, first, last):
    for i in range(first, last):
        for k in range(indptr[i], indptr[i + _ONE]):
            rows[k] = i
