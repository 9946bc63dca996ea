"""SELL-C-sigma: rows sorted by length within windows, in chunks padded to their longest row."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.errors import InputError
from sparsecast.features.narrow_storage import GROUP_ROWS, NARROW_COLUMNS
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.row_lengths import ROW_LENGTH_LEVELS
from sparsecast.formats import FORMATS
from sparsecast.formats.narrowing import COLUMNS, VALUES, Narrow, refuse
from sparsecast.formats.storage_format import Integers, StorageFormat
from sparsecast.system.jit import njit
from sparsecast.system.memory import aligned_empty
from sparsecast.system.parallel import balanced_parts, in_parts

#: Rows of a chunk, C. Eight sums hide the latency of the addition and fit in registers; more rows would pad
#: more. No benchmark here compares other sizes yet.
CHUNK_ROWS = 8

#: Sorting windows to try before all rows are sorted. A small window keeps neighbours together, so that x and
#: y stay in the nearest cache: on a narrow band a window of 256 is faster than sorting all. Where all are
#: sorted, threads write to the same lines of y (decision 72).
WINDOWS = (1, 256, 1024, 4096)

#: Greatest padding over that of a sort of all rows, in order and in windows: power-law rows with far columns
#: are slower in windows of 256 than in wider ones (`benchmarks/run.py sell-windows` of commit
#: 92e4a5d6).
PADDING_ABOVE_LEAST, PADDING_OF_WINDOWS = 0.05, 0.15

#: Greatest share of mispredicted rows for which the rows are expected to stay in order. Only forecasts of the
#: size use it; `from_csr` counts the padding.
IN_ORDER_MISPREDICTED = 0.06

#: Entries of the longest row whose length 16 bits hold.
MOST_LENGTH = (1 << 16) - 1

_U64 = np.uint64
_ONE, _CHUNK = _U64(1), _U64(CHUNK_ROWS)


@FORMATS.register("sell")
@dataclass(frozen=True)
class SELL(StorageFormat):
    """Chunks of CHUNK_ROWS rows, each stored column by column and as wide as its longest row.

    Source: Kreutzer, Hager, Wellein, Fehske, Bishop (2014), A unified sparse matrix data format for efficient
    general sparse matrix-vector multiplication on modern processors with wide SIMD units.

    Rows are sorted by descending length, stably, within windows of `sigma` rows, so that rows of similar
    length share a chunk. Padding is as in ELL: it repeats the last column of its own row, or column 0 in an
    empty row, with the value 0. A chunk of C rows stores at most C times the entries.
    """

    name: ClassVar[str] = "sell"
    counts_row_ends: ClassVar[bool] = False
    has_slices: ClassVar[bool] = True
    benchmark_kinds: ClassVar[tuple[str, ...]] = ("blocks", "symmetric")
    predicted_within: ClassVar[float] = 0.1
    narrow_parameters: ClassVar[Mapping[str, tuple[Any, ...]]] = {"values": VALUES, "columns": COLUMNS}

    sigma: int  # rows of a sorting window; 1 leaves the rows in order
    chunk_starts: Integers  # first entry of each chunk, and the number of stored entries: shape (chunks + 1,)
    #: Shape (stored,): entry j of the chunk's row i is at the chunk's start + j * CHUNK_ROWS + i. With bases
    #: as in CSR.
    indices: NDArray[Any]
    data: NDArray[Any]  # as `indices`; where all values are alike, as in CSR
    #: The row of the matrix for each stored row: shape (rows,), or (0,) with sigma = 1.
    permutation: NDArray[Any]
    #: Entries of each stored row, where padding has the value of all others and must not be added; else of
    #: shape (0,).
    lengths: NDArray[np.uint16]
    bases: NDArray[Any]  # shape (groups of GROUP_ROWS rows,), or (0,) with full columns

    @classmethod
    def from_csr(
        cls,
        A: csr_array[Any],
        sigma: int | None = None,
        values: str | None = None,
        columns: int | None = None,
    ) -> Self:
        """Return `A` in chunks.

        `sigma` is 1 or a multiple of CHUNK_ROWS, else an InputError is raised; by default `best_window`.
        `values` and `columns` are as in Narrow. Columns that count from bases other than 0 need sorting
        windows within the groups of rows, and values alike rows of at most MOST_LENGTH entries.
        """
        row_lengths, narrow = np.diff(A.indptr), Narrow(values, columns)
        rows, nnz = A.shape[0], int(A.indptr[-1])
        most = GROUP_ROWS if columns and A.shape[1] > NARROW_COLUMNS else None
        sigma = best_window(row_lengths, most) if sigma is None else _checked_window(sigma, most)
        if values == "one" and row_lengths.max(initial=0) > MOST_LENGTH:
            refuse(
                f"SELL with a row of {row_lengths.max():,} entries without values", f"at most {MOST_LENGTH:,}"
            )
        stored = int(_windowed_entries(row_lengths, sigma))
        entry_bytes = sum(narrow.streamed_bytes(A.data.itemsize, A.indices.itemsize))
        cls.refuse_excess(nnz, stored, stored * entry_bytes)
        permutation = np.empty(rows if sigma > 1 else 0, dtype=A.indices.dtype)
        if sigma > 1:
            sort_rows(row_lengths, sigma, permutation)
            row_lengths = row_lengths[permutation]
        first_rows = np.arange(0, rows, CHUNK_ROWS)
        widths = np.maximum.reduceat(row_lengths, first_rows) if rows else first_rows
        chunk_starts = CHUNK_ROWS * np.append(0, np.cumsum(widths, dtype=np.int64))
        columns_by_row, bases = narrow.stored_columns(A.indptr, A.indices, A.shape[1])
        values_by_row = narrow.stored_values(np.ascontiguousarray(A.data[:nnz]))

        def chunked(by_row: NDArray[Any], repeats: bool) -> NDArray[Any]:
            made = aligned_empty(stored, by_row.dtype)
            arrays = (A.indptr, by_row, repeats, permutation, chunk_starts, made)
            in_parts(_fill_chunks, arrays, balanced_parts(chunk_starts))
            return made

        is_one = values == "one"
        data = values_by_row if is_one else chunked(values_by_row, False)
        lengths = row_lengths.astype(np.uint16) if is_one else np.empty(0, dtype=np.uint16)
        arrays = chunk_starts, chunked(columns_by_row, True), data, permutation, lengths, bases
        return cls(A.shape, nnz, sigma, *arrays, values=values)

    @classmethod
    def stored_entries(cls, blocks: RowBlocks, **how: Any) -> Integers:
        """Estimate the entries stored for each block, with padding.

        Windows store at most PADDING_OF_WINDOWS more than a sort of all rows, mostly less than half of it.
        The exact number depends on the order of the rows, which RowBlocks do not have: half of
        PADDING_ABOVE_LEAST is added, or less if hardly any row is mispredicted. Exact if all rows have one
        length of at most 64.
        """
        share = blocks.mispredicted_rows / np.maximum(blocks.rows, 1)
        # The entries after a sort of all rows: for each length, the rows that reach it, in chunks.
        weights = _weights(len(blocks.levels))
        chunks = (blocks.rows_at_least + (CHUNK_ROWS - 1)) // CHUNK_ROWS
        one_chunk = CHUNK_ROWS * blocks.row_length_max
        least = np.maximum(CHUNK_ROWS * (chunks @ weights), np.maximum(blocks.nnz, one_chunk))
        stored = least * (1.0 + np.minimum(share, PADDING_ABOVE_LEAST / 2))
        return np.asarray(np.minimum(stored.astype(np.int64), _most_entries(blocks)))

    @classmethod
    def predicted_bytes(cls, blocks: RowBlocks, value_bytes: int, index_bytes: int, **how: Any) -> Integers:
        """Estimate the size in bytes of each block, as `stored_entries` does.

        The permutation counts where the rows are expected to be sorted.
        """
        entries = Narrow(**how).size(cls.stored_entries(blocks), blocks.rows, value_bytes, index_bytes)
        chunk_starts = 8 * (-(-blocks.rows // CHUNK_ROWS) + 1)
        permutation = blocks.rows * index_bytes * _are_sorted(blocks)
        lengths = 2 * blocks.rows if how.get("values") == "one" else 0
        return np.asarray(entries + chunk_starts + permutation + lengths)

    @classmethod
    def working_bytes(cls, blocks: RowBlocks, value_bytes: int, index_bytes: int, **how: Any) -> Integers:
        """Return the lengths of the rows, and narrow values and columns in the order of the rows."""
        by_entry = Narrow(**how).streamed_bytes(value_bytes, index_bytes)
        names = ("values", "columns")
        copied = sum(size for size, name in zip(by_entry, names, strict=True) if how.get(name))
        return np.asarray(blocks.rows * index_bytes + blocks.nnz * copied)

    @classmethod
    def narrowed(cls, holds: Mapping[str, Any], whole: RowBlocks) -> dict[str, Any]:
        taken = super().narrowed(holds, whole)
        if whole.row_length_max[0] > MOST_LENGTH and taken.get("values") == "one":
            del taken["values"]
        if whole.matrix.cols > NARROW_COLUMNS and _are_sorted(whole)[0]:  # perhaps in windows beyond a group
            taken.pop("columns", None)
        return taken


def _are_sorted(blocks: RowBlocks) -> NDArray[np.bool_]:
    """Tell which blocks are expected to be sorted: with rows mispredicted, unless no order pads much."""
    is_sorted = blocks.mispredicted_rows > IN_ORDER_MISPREDICTED * blocks.rows
    most = (1.0 + PADDING_ABOVE_LEAST) * SELL.stored_entries(blocks)
    return np.asarray(is_sorted & (_most_entries(blocks) > most))


def _most_entries(blocks: RowBlocks) -> Integers:
    """Return an upper bound for any order: every chunk as wide as the longest row, or of one row."""
    widest = -(-blocks.rows // CHUNK_ROWS) * blocks.row_length_max
    return np.asarray(CHUNK_ROWS * np.minimum(widest, blocks.nnz))


@functools.cache
def _weights(levels: int) -> NDArray[np.float64]:
    """Return the number of lengths of the chunks at each of the first levels of ROW_LENGTH_LEVELS."""
    steps = np.diff(ROW_LENGTH_LEVELS[:levels]).astype(float)
    # Between two levels the chunks fall from one count to the other: on average their mean.
    weights = np.append(np.where(steps > 1, steps / 2, 0.0), 0.0)
    weights[1:] += np.where(steps > 1, steps / 2, 1.0)
    return weights


def best_window(row_lengths: NDArray[Any], most_rows: int | None = None) -> int:
    """Return the rows of a sorting window for rows of these lengths.

    The least of WINDOWS that stores at most PADDING_OF_WINDOWS more than a sort of all rows, in order
    PADDING_ABOVE_LEAST, or all rows; of no more than `most_rows` where that is given, whatever it stores.
    """
    everything = max(-(-len(row_lengths) // CHUNK_ROWS) * CHUNK_ROWS, 1)
    least = _windowed_entries(row_lengths, everything)
    for window in WINDOWS:
        is_last = window == most_rows
        most = (1.0 + (PADDING_ABOVE_LEAST if window == 1 else PADDING_OF_WINDOWS)) * least
        if window < everything and (is_last or _windowed_entries(row_lengths, window) <= most):
            return window
    # One chunk is the same in any order.
    return everything if everything > CHUNK_ROWS else 1


def _checked_window(sigma: int, most_rows: int | None) -> int:
    if sigma != 1 and (sigma < 1 or sigma % CHUNK_ROWS):
        raise InputError(
            f"sigma = {sigma}: expected 1 (no sorting) or a multiple of the {CHUNK_ROWS} rows of a chunk; "
            f"round it"
        )
    if most_rows and most_rows % sigma:
        refuse(f"SELL with 16-bit columns in windows of {sigma} rows", f"a divisor of {most_rows}")
    return sigma


@njit(nogil=True, cache=True)
def sort_rows(row_lengths, window, permutation):
    """Write the rows by descending length, stably, within windows: a counting sort."""
    rows = len(row_lengths)
    longest = 0
    for i in range(rows):
        longest = max(longest, row_lengths[i])
    places = np.zeros(longest + 1, dtype=np.int64)
    for start in range(0, rows, window):
        end = min(start + window, rows)
        top = 0
        for i in range(start, end):
            places[row_lengths[i]] += 1
            top = max(top, row_lengths[i])
        place = start
        for length in range(top, -1, -1):
            count = places[length]
            places[length] = place
            place += count
        for i in range(start, end):
            permutation[places[row_lengths[i]]] = i
            places[row_lengths[i]] += 1
        places[: top + 1] = 0


@njit(nogil=True, cache=True)
def _windowed_entries(row_lengths, window):
    """Count the entries stored after a sort within windows (1: none), without sorting."""
    rows = len(row_lengths)
    longest = 0
    for i in range(rows):
        longest = max(longest, row_lengths[i])
    counts = np.zeros(longest + 1, dtype=np.int64)
    total = 0
    if window == 1:
        for start in range(0, rows, CHUNK_ROWS):
            width = 0
            for i in range(start, min(start + CHUNK_ROWS, rows)):
                width = max(width, row_lengths[i])
            total += width
        return total * CHUNK_ROWS
    for start in range(0, rows, window):
        top = 0
        for i in range(start, min(start + window, rows)):
            counts[row_lengths[i]] += 1
            top = max(top, row_lengths[i])
        place = 0
        for length in range(top, -1, -1):
            # Chunks that begin with a row of this length are this wide.
            before = (place + CHUNK_ROWS - 1) // CHUNK_ROWS
            place += counts[length]
            total += length * ((place + CHUNK_ROWS - 1) // CHUNK_ROWS - before)
            counts[length] = 0
    return total * CHUNK_ROWS


@njit(nogil=True, cache=True)
def _fill_chunks(indptr, by_row, repeats, permutation, chunk_starts, chunked, first, last):
    """Write what each entry has, columns or values; padding repeats the last of its row, or is 0."""
    rows, in_order = _U64(len(indptr) - 1), len(permutation) == 0
    for chunk in range(first, last):
        end = chunk_starts[chunk + _ONE]
        for lane in range(_CHUNK):
            place = chunk * _CHUNK + lane
            k = chunk_starts[chunk] + lane
            filler = by_row.dtype.type(0)
            if place < rows:
                row = place if in_order else _U64(permutation[place])
                for entry in range(indptr[row], indptr[row + _ONE]):
                    chunked[k] = by_row[entry]
                    k += _CHUNK
                if repeats and indptr[row] < indptr[row + _ONE]:
                    filler = by_row[indptr[row + _ONE] - _ONE]
            while k < end:
                chunked[k] = filler
                k += _CHUNK
