"""CSR: compressed sparse rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats import FORMATS
from sparsecast.formats.narrowing import COLUMNS, VALUES, Narrow
from sparsecast.formats.storage_format import Integers, StorageFormat


@FORMATS.register("csr")
@dataclass(frozen=True)
class CSR(StorageFormat):
    """Row pointers, column indices and values; shares its arrays with the matrix it came from."""

    name: ClassVar[str] = "csr"
    benchmark_kinds: ClassVar[tuple[str, ...]] = (
        "blocks",
        "diagonals",
        "symmetric",
        "symmetric blocks",
        "mirrored",
    )
    is_converted: ClassVar[bool] = False
    narrow_parameters: ClassVar[Mapping[str, tuple[Any, ...]]] = {"values": VALUES, "columns": COLUMNS}

    indptr: NDArray[Any]  # integers, shape (rows + 1,)
    #: Columns, shape (nnz,), or with bases uint16: columns less the base of their group of rows.
    indices: NDArray[Any]
    data: NDArray[Any]  # shape (nnz,), or (1,) where all values are alike
    bases: NDArray[Any]  # integers, shape (groups of GROUP_ROWS rows,), or (0,) with full columns

    @classmethod
    def from_csr(cls, A: csr_array[Any], values: str | None = None, columns: int | None = None) -> Self:
        """Return `A` itself as a format; only strided values or columns are copied, and narrow ones.

        `values` and `columns` are as in Narrow.
        """
        narrow, nnz = Narrow(values, columns), int(A.indptr[-1])
        indices, bases = narrow.stored_columns(A.indptr, A.indices, A.shape[1])
        data = narrow.stored_values(np.ascontiguousarray(A.data[:nnz]))
        return cls(A.shape, nnz, np.ascontiguousarray(A.indptr), indices, data, bases, values=values)

    @classmethod
    def predicted_bytes(cls, blocks: RowBlocks, value_bytes: int, index_bytes: int, **how: Any) -> Integers:
        entries = Narrow(**how).size(blocks.nnz, blocks.rows, value_bytes, index_bytes)
        return np.asarray(entries + (blocks.rows + 1) * index_bytes)

    @classmethod
    def shared_bytes(cls, blocks: RowBlocks, value_bytes: int, index_bytes: int, **how: Any) -> Integers:
        """Return the row pointers, and the values and columns that are stored in full."""
        shared = {"values": value_bytes, "columns": index_bytes}
        entry_bytes = sum(size for name, size in shared.items() if not how.get(name))
        return np.asarray(blocks.nnz * entry_bytes + (blocks.rows + 1) * index_bytes)

    @classmethod
    def row_end_work(cls, blocks: RowBlocks, **how: Any) -> dict[str, NDArray[Any]]:
        """Return the mispredicted ends of rows, or the rows if the kernel masks their ends instead."""
        is_masked = blocks.is_mispredicted
        return {
            "mispredicted": np.where(is_masked, 0, blocks.mispredicted_rows),
            "masked rows": np.where(is_masked, blocks.rows, 0),
        }
