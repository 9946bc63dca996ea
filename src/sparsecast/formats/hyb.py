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
from sparsecast.records import Candidate
from sparsecast.system.integers import unsigned
from sparsecast.system.jit import njit
from sparsecast.system.parallel import balanced_parts, in_parts, on_threads

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
    """An ELL part of a fixed width and a COO part with the rest.

    Attributes
    ----------
    indices, data : arrays of shape (rows, width)
        The ELL part, padded as in ELL.
    overflow_rows, overflow_cols, overflow_data : arrays of shape (overflow,)
        The COO part, in the order of the rows.
    """

    name: ClassVar[str] = "hyb"
    predicted_parameters: ClassVar[tuple[str, ...]] = ("least_rows",)

    indices: NDArray[Any]
    data: NDArray[Any]
    overflow_rows: NDArray[Any]
    overflow_cols: NDArray[Any]
    overflow_data: NDArray[Any]

    @classmethod
    def from_csr(cls, A: csr_array[Any], least_rows: int = 1) -> Self:
        """Return `A`, divided at the width of `threshold`, which limits the padding."""
        row_lengths = np.diff(A.indptr)
        width = threshold(row_lengths, least_rows)
        overflow = int(np.maximum(row_lengths - width, 0).sum())
        stored = A.shape[0] * width + overflow
        entry_bytes = A.data.itemsize + A.indices.itemsize
        cls.refuse_excess(int(A.indptr[-1]), stored, stored * entry_bytes + overflow * A.indices.itemsize)
        padded = padded_rows(A, width)
        beyond = np.empty(overflow, dtype=A.indices.dtype), *cls.empty(overflow, A)
        _collect_overflow(A, width, beyond)
        return cls(A.shape, int(A.indptr[-1]), *padded, *beyond)

    @classmethod
    def split(cls, blocks: RowBlocks, least_rows: int = 1) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
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
    def split_of(cls, candidate: Candidate, blocks: RowBlocks) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return `split` with the parameters of a Candidate of this format."""
        split: Any = cls.split
        width_and_overflow: tuple[NDArray[np.int64], NDArray[np.int64]] = split(
            blocks, **candidate.parameters
        )
        return width_and_overflow

    @classmethod
    def row_end_work(cls, blocks: RowBlocks, least_rows: int = 1) -> dict[str, NDArray[Any]]:
        """Return the entries of the COO part, and the rows that have some."""
        width, overflow = cls.split(blocks, least_rows)
        beyond = np.minimum(overflow, _rows_longer_than(blocks, width))
        return {"overflow entries": overflow, "overflow rows": beyond}

    @classmethod
    def longest_row_work(cls, blocks: RowBlocks, least_rows: int = 1) -> dict[str, NDArray[Any]]:
        """Return the width of the ELL part, and the entries of the COO part."""
        width, overflow = cls.split(blocks, least_rows)
        return {"longest row": width, "overflow entries": overflow}

    @classmethod
    def stored_entries(cls, blocks: RowBlocks, least_rows: int = 1) -> NDArray[np.int64]:
        width, overflow = cls.split(blocks, least_rows)
        return blocks.rows * width + overflow

    @classmethod
    def predicted_bytes(
        cls, blocks: RowBlocks, value_bytes: int, index_bytes: int, least_rows: int = 1
    ) -> NDArray[np.int64]:
        width, overflow = cls.split(blocks, least_rows)
        padded = blocks.rows * width * (value_bytes + index_bytes)
        return padded + overflow * (value_bytes + 2 * index_bytes)

    @classmethod
    def working_bytes(cls, blocks: RowBlocks, value_bytes: int, index_bytes: int, **how: Any) -> Integers:
        """Return the lengths of the rows."""
        return np.asarray(blocks.rows * index_bytes)


def _rows_longer_than(blocks: RowBlocks, width: NDArray[np.int64]) -> NDArray[np.int64]:
    level = np.minimum(np.searchsorted(blocks.levels, width) + 1, blocks.rows_at_least.shape[1] - 1)
    return np.take_along_axis(blocks.rows_at_least, level[:, None], axis=1)[:, 0]


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


def _collect_overflow(A: csr_array[Any], width: int, overflow: tuple[NDArray[Any], ...]) -> None:
    """Write rows, columns and values of the entries beyond the width."""
    bounds = balanced_parts(A.indptr)
    counts = in_parts(_count_overflow, (A.indptr, np.uint64(width)), bounds)
    before = dict(zip(bounds, np.concatenate(([0], np.cumsum(counts))).tolist(), strict=True))
    arrays = tuple(unsigned(array) for array in (A.indptr, A.indices, A.data, *overflow))

    def copy(first: int, last: int) -> None:
        span = (np.uint64(value) for value in (width, before[first], first, last))
        _copy_overflow(*arrays, *span)

    on_threads(copy, bounds)


@njit(nogil=True, cache=True)
def _count_overflow(indptr, width, first, last):  # type: ignore[no-untyped-def]
    count = _U64(0)
    for i in range(first, last):
        length = _U64(indptr[i + _ONE]) - _U64(indptr[i])
        count += max(length, width) - width
    return count


@njit(nogil=True, cache=True)
def _copy_overflow(indptr, indices, data, rows, cols, values, width, position, first, last):  # type: ignore[no-untyped-def]
    for i in range(first, last):
        for k in range(_U64(indptr[i]) + width, _U64(indptr[i + _ONE])):
            rows[position] = i
            cols[position] = indices[k]
            values[position] = data[k]
            position += _ONE
