"""CSR with column indices of 16 bits: 10 bytes an entry instead of 12, for at most 65,536 columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.errors import FormatError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats import FORMATS
from sparsecast.formats.storage_format import StorageFormat

MOST_COLUMNS = 1 << 16


@FORMATS.register("short_csr")
@dataclass(frozen=True)
class ShortCSR(StorageFormat):
    name: ClassVar[str] = "short_csr"

    indptr: NDArray[Any]
    indices: NDArray[np.uint16]
    data: NDArray[Any]

    @classmethod
    def from_csr(cls, A: csr_array[Any]) -> Self:
        _refuse_wide(A.shape[1])
        nnz = int(A.indptr[-1])
        cls.refuse_excess(nnz, nnz, A.indptr.nbytes + nnz * (2 + A.data.itemsize))
        return cls(A.shape, nnz, A.indptr, A.indices[:nnz].astype(np.uint16), A.data[:nnz])

    @classmethod
    def stored_entries(cls, blocks: RowBlocks) -> NDArray[np.int64]:
        return blocks.nnz

    @classmethod
    def predicted_bytes(cls, blocks: RowBlocks, value_bytes: int, index_bytes: int) -> NDArray[np.int64]:
        return blocks.nnz * (value_bytes + 2) + (blocks.rows + 1) * index_bytes

    @classmethod
    def can_hold(cls, blocks: RowBlocks) -> NDArray[np.bool_]:
        return np.full(len(blocks.rows), blocks.matrix.cols <= MOST_COLUMNS)

    @classmethod
    def refuse_unsuited(cls, blocks: RowBlocks, value_bytes: int, index_bytes: int) -> None:
        _refuse_wide(blocks.matrix.cols)


def _refuse_wide(cols: int) -> None:
    if cols > MOST_COLUMNS:
        raise FormatError(f"SHORT_CSR of {cols:,} columns: expected at most {MOST_COLUMNS:,}; use CSR")
