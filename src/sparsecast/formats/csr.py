"""CSR: compressed sparse rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats import FORMATS
from sparsecast.formats.storage_format import StorageFormat


@FORMATS.register("csr")
@dataclass(frozen=True)
class CSR(StorageFormat):
    """Row pointers, column indices and values; shares its arrays with the matrix it came from.

    Attributes
    ----------
    indptr : integer array of shape (rows + 1,)
    indices : integer array of shape (nnz,)
    data : array of shape (nnz,)
    """

    name: ClassVar[str] = "csr"
    benchmark_kinds: ClassVar[tuple[str, ...]] = ("blocks", "diagonals", "symmetric", "mirrored")
    is_converted: ClassVar[bool] = False

    indptr: NDArray[Any]
    indices: NDArray[Any]
    data: NDArray[Any]

    @classmethod
    def from_csr(cls, A: csr_array[Any]) -> Self:
        """Return `A` itself as a format; only strided values or columns are copied."""
        arrays = (np.ascontiguousarray(array) for array in (A.indptr, A.indices, A.data))
        return cls(A.shape, int(A.indptr[-1]), *arrays)

    @classmethod
    def predicted_bytes(cls, blocks: RowBlocks, value_bytes: int, index_bytes: int) -> NDArray[np.int64]:
        return blocks.nnz * (value_bytes + index_bytes) + (blocks.rows + 1) * index_bytes

    @classmethod
    def row_end_work(cls, blocks: RowBlocks) -> dict[str, NDArray[Any]]:
        """Return the mispredicted ends of rows, or the rows if the kernel masks their ends instead."""
        is_masked = blocks.is_mispredicted
        return {
            "mispredicted": np.where(is_masked, 0, blocks.mispredicted_rows),
            "masked rows": np.where(is_masked, blocks.rows, 0),
        }
