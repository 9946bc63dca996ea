"""HYB: the regular part of every row in ELL, the rest of long rows in COO."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.row_lengths import ROW_LENGTH_LEVELS
from sparsecast.formats import FORMATS
from sparsecast.formats.ell import padded_rows
from sparsecast.formats.storage_format import Integers, StorageFormat
from sparsecast.system.jit import njit
from sparsecast.system.parallel import balanced_parts, in_parts

#: Least share of the rows that reach a column of the ELL part: Bell and Garland (2009, section 4.4) found ELL
#: about three times as fast as COO.
MIN_ROW_SHARE = 1.0 / 3.0

#: Their second condition: this many rows keep a GPU busy. Other devices do not need it.
LEAST_ROWS_ON_GPUS = 4096

_U64 = np.uint64
_ONE = _U64(1)


@FORMATS.register("hyb")
@dataclass(frozen=True)
class HYB(StorageFormat):
    """An ELL part of a fixed width and a COO part with the rest."""

    name: ClassVar[str] = "hyb"
    predicted_parameters: ClassVar[tuple[str, ...]] = ("least_rows",)

    indices: NDArray[Any]  # the ELL part, padded as in ELL: shape (rows, width)
    data: NDArray[Any]  # shape (rows, width)
    overflow_rows: NDArray[Any]  # the COO part, in the order of the rows: shape (overflow,)
    overflow_cols: NDArray[Any]  # shape (overflow,)
    overflow_data: NDArray[Any]  # shape (overflow,)

    @classmethod
    def from_csr(cls, A: csr_array[Any], least_rows: int = 1) -> Self:
        """Return `A`, divided at the width of `threshold`, which limits the padding."""
        row_lengths = np.diff(A.indptr)
        width = threshold(row_lengths, least_rows)
        ends = np.maximum(row_lengths - width, 0)
        del row_lengths
        overflow = int(np.cumsum(ends, out=ends)[-1]) if len(ends) else 0
        stored = A.shape[0] * width + overflow
        entry_bytes = A.data.itemsize + A.indices.itemsize
        cls.refuse_excess(int(A.indptr[-1]), stored, stored * entry_bytes + overflow * A.indices.itemsize)
        padded = padded_rows(A, width)
        beyond = np.empty(overflow, dtype=A.indices.dtype), *cls.empty(overflow, A)
        arrays = (A.indptr, A.indices, A.data, ends, np.uint64(width), *beyond)
        in_parts(_copy_overflow, arrays, balanced_parts(A.indptr))
        return cls(A.shape, int(A.indptr[-1]), *padded, *beyond)

    @classmethod
    def split(cls, blocks: RowBlocks, least_rows: int = 1) -> tuple[Integers, Integers]:
        """Return the ELL width and the overflow entries of each block.

        Source: threshold of Bell and Garland (2009, section 4.4), rounded down to a level of
        ROW_LENGTH_LEVELS so that it follows from prefix sums. A column needs at least `least_rows` rows,
        LEAST_ROWS_ON_GPUS there.
        """
        enough = blocks.rows_at_least >= np.maximum(MIN_ROW_SHARE * blocks.rows, least_rows)[:, None]
        level = np.maximum(enough.sum(axis=1) - 1, 0)
        width = blocks.levels[level]
        in_ell = np.take_along_axis(blocks.entries_up_to, level[:, None], axis=1)[:, 0]
        return width, blocks.nnz - in_ell

    @classmethod
    def row_end_work(cls, blocks: RowBlocks, **how: Any) -> dict[str, NDArray[Any]]:
        """Return the entries of the COO part, and the rows that have some."""
        width, overflow = cls.split(blocks, **how)
        level = np.minimum(np.searchsorted(blocks.levels, width) + 1, blocks.rows_at_least.shape[1] - 1)
        beyond = np.minimum(overflow, np.take_along_axis(blocks.rows_at_least, level[:, None], axis=1)[:, 0])
        return {"overflow entries": overflow, "overflow rows": beyond}

    @classmethod
    def longest_row_work(cls, blocks: RowBlocks, **how: Any) -> dict[str, NDArray[Any]]:
        """Return the width of the ELL part, and the entries of the COO part."""
        width, overflow = cls.split(blocks, **how)
        return {"longest row": width, "overflow entries": overflow}

    @classmethod
    def stored_entries(cls, blocks: RowBlocks, **how: Any) -> Integers:
        width, overflow = cls.split(blocks, **how)
        return blocks.rows * width + overflow

    @classmethod
    def predicted_bytes(cls, blocks: RowBlocks, value_bytes: int, index_bytes: int, **how: Any) -> Integers:
        width, overflow = cls.split(blocks, **how)
        padded = blocks.rows * width * (value_bytes + index_bytes)
        return padded + overflow * (value_bytes + 2 * index_bytes)

    @classmethod
    def working_bytes(cls, blocks: RowBlocks, value_bytes: int, index_bytes: int, **how: Any) -> Integers:
        """Return where the COO entries of each row end."""
        return np.asarray(blocks.rows * index_bytes)


def threshold(row_lengths: NDArray[Any], least_rows: int = 1) -> int:
    """Return the width of the ELL part for rows of these lengths.

    The largest level of ROW_LENGTH_LEVELS that at least MIN_ROW_SHARE of the rows, and `least_rows` of them,
    reach.
    """
    needed = max(int(np.ceil(MIN_ROW_SHARE * len(row_lengths))), least_rows)
    if needed > len(row_lengths):
        return 0
    reached = int(np.partition(row_lengths, len(row_lengths) - needed)[len(row_lengths) - needed])
    level = int(np.searchsorted(ROW_LENGTH_LEVELS, reached, side="right")) - 1
    return ROW_LENGTH_LEVELS[level]


@njit(nogil=True, cache=True)
def _copy_overflow(indptr, indices, data, ends, width, rows, cols, values, first, last):
    """Write the entries beyond the width; `ends` has where those of each row end."""
    for i in range(first, last):
        start, end = _U64(indptr[i]) + width, _U64(indptr[i + _ONE])
        place = _U64(ends[i]) - (max(start, end) - start)
        for k in range(start, end):
            rows[place] = i
            cols[place] = indices[k]
            values[place] = data[k]
            place += _ONE
