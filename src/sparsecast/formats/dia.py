"""DIA: the diagonals that hold an entry, without any column index."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.errors import InputError, PaddingError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats import FORMATS
from sparsecast.formats.bcsr import sort_columns
from sparsecast.formats.storage_format import MAX_PADDING_FACTOR, StorageFormat
from sparsecast.system.jit import njit
from sparsecast.system.memory import aligned_empty
from sparsecast.system.parallel import balanced_parts, equal_parts, in_parts, on_threads, threads_for

#: Rows that a chunk may have: one bit each in a word that tells entries from padding.
CHUNKS = (8, 16, 32, 64)

#: Bytes of one diagonal in one chunk: as many sums as stay in registers. From 16 rows on their number made no
#: difference beyond the noise; with 8, stencils were slower in cache (benchmarks/run.py dia-chunks).
CHUNK_BYTES = 256

_U64 = np.uint64
_ONE = _U64(1)

Integers = NDArray[np.int64]


@FORMATS.register("dia")
@dataclass(frozen=True)
class DIA(StorageFormat):
    """Diagonals in chunks of rows: of each chunk the first diagonal's values, then the second's, and so on.

    A product then streams one array from end to end. The values of row i on the diagonal of offset d are
    multiplied by x[i + d], so no indices are streamed. Every diagonal is stored in all rows; where it lies
    outside the matrix its values are 0 and no kernel multiplies them. Padding inside the matrix reads an
    x that its row need not have: a non-finite x there gives NaN in every row that its diagonals cross, as
    it does in other libraries.

    Source: the diagonal format of Saad (2003), Iterative Methods for Sparse Linear Systems, section 3.4.

    Attributes
    ----------
    chunk_rows : int
        Rows of a chunk; the last one may have fewer.
    offsets : integer array of shape (diagonals,)
        Column less row of each diagonal, ascending. Duplicate entries of the matrix stand on further
        diagonals of the same offset, which no forecast sees: many of them are better summed first.
    data : array of shape (rows * diagonals,)
        The value of the chunk's row i on diagonal j is at the chunk's start + j * (rows of the chunk) + i.
    present : unsigned integer array of shape (chunks, diagonals)
        A bit for each row of the chunk that tells entries from padding. Only `to_csr` reads it.
    order : integer array of shape (nnz,) or (0,)
        Where the matrix had each entry, in the order of ascending columns; empty where it had them so.
        Only `to_csr` reads it.
    """

    name: ClassVar[str] = "dia"
    benchmark_kinds: ClassVar[tuple[str, ...]] = ("diagonals",)
    unstreamed: ClassVar[tuple[str, ...]] = ("present", "order")
    predicted_from_rows: ClassVar[bool] = False
    pads_with_own_columns: ClassVar[bool] = False

    chunk_rows: int
    offsets: NDArray[Any]
    data: NDArray[Any]
    present: NDArray[Any]
    order: NDArray[Any]

    @classmethod
    def from_csr(cls, A: csr_array[Any], chunk_rows: int | None = None) -> Self:
        """Return `A` in diagonals, which are counted before they are allocated.

        Parameters
        ----------
        chunk_rows : int, optional
            Rows of a chunk, one of CHUNKS, else an InputError is raised. By default as many as make
            CHUNK_BYTES.
        """
        chunk_rows = _default_chunk(A.data.itemsize) if chunk_rows is None else _checked(chunk_rows)
        rows, nnz = A.shape[0], int(A.indptr[-1])
        indices = A.indices[:nnz]
        order = _order(A.indptr, indices)
        offsets = _offsets(A.indptr, indices, order)
        words = (-(-rows // chunk_rows), len(offsets))
        size = rows * len(offsets) * A.data.itemsize + offsets.nbytes + order.nbytes
        size += words[0] * words[1] * chunk_rows // 8
        cls.refuse_excess(nnz, rows * len(offsets), size)
        data = aligned_empty(rows * len(offsets), A.data.dtype)
        present = np.empty(words, dtype=f"uint{chunk_rows}")
        arrays = (A.indptr, indices, A.data, order, offsets, data, present)
        in_parts(_fill_chunks, arrays, balanced_parts(A.indptr[_first_rows(rows, chunk_rows)]))
        return cls(A.shape, nnz, chunk_rows, offsets, data, present, order)

    def to_csr(self) -> csr_array[Any]:
        """Return the matrix without its padding, each entry where it was."""
        indptr = np.zeros(self.shape[0] + 1, dtype=self.offsets.dtype)
        bounds = equal_parts(len(self.present), threads_for(len(self.data)))
        in_parts(_count_rows, (self.present, indptr), bounds)
        A = self.empty_csr(indptr)
        arrays = (indptr, A.indices, A.data, self.order, self.offsets, self.data, self.present)
        in_parts(_empty_chunks, arrays, bounds)
        return A

    @classmethod
    def stored_entries(cls, blocks: RowBlocks) -> Integers:
        """Return rows times the diagonals of the matrix, exact without duplicates for a whole matrix.

        A row block is taken for the matrix in small: it may have fewer diagonals.
        """
        return np.asarray(blocks.rows * blocks.matrix.bands.diagonals)

    @classmethod
    def row_end_work(cls, blocks: RowBlocks) -> dict[str, NDArray[Any]]:
        """Return the diagonals: where one enters or leaves the matrix, a chunk's rows are done one by one."""
        count = 0 if blocks.matrix.lacks(["bands"]) else blocks.matrix.bands.diagonals
        return {"diagonals": np.full(len(blocks.rows), count)}

    @classmethod
    def predicted_bytes(cls, blocks: RowBlocks, value_bytes: int, index_bytes: int) -> Integers:
        """Return the size in bytes of each block, exact where `stored_entries` is and rows are sorted."""
        chunk_rows = _default_chunk(value_bytes)
        bits = -(-blocks.rows // chunk_rows) * blocks.matrix.bands.diagonals * chunk_rows
        return np.asarray(cls._streamed_bytes(blocks, value_bytes, index_bytes) + bits // 8)

    @classmethod
    def _streamed_bytes(cls, blocks: RowBlocks, value_bytes: int, index_bytes: int) -> Integers:
        return np.asarray(
            cls.stored_entries(blocks) * value_bytes + blocks.matrix.bands.diagonals * index_bytes
        )

    @classmethod
    def refuse_unsuited(cls, blocks: RowBlocks, value_bytes: int, index_bytes: int) -> None:
        """Raise a PaddingError if the diagonals would stream as much as CSR."""
        how = f"on {blocks.matrix.bands.diagonals:,} diagonals"
        streamed = cls._streamed_bytes(blocks, value_bytes, index_bytes)
        cls.refuse_unless_below_csr(blocks, streamed, value_bytes, index_bytes, how)


def _default_chunk(value_bytes: int) -> int:
    return CHUNK_BYTES // value_bytes


def _checked(chunk_rows: int) -> int:
    if chunk_rows not in CHUNKS:
        raise InputError(
            f"chunk_rows = {chunk_rows}: expected one of {', '.join(map(str, CHUNKS))}; name one, or none"
        )
    return chunk_rows


def _first_rows(rows: int, chunk_rows: int) -> Integers:
    """Return the first row of each chunk, and the number of rows."""
    return np.append(np.arange(0, rows, chunk_rows, dtype=np.int64), rows)


def _order(indptr: NDArray[Any], indices: NDArray[Any]) -> NDArray[Any]:
    """Return the order of ascending columns within each row, or nothing where they ascend already."""
    bounds = balanced_parts(indptr)
    if all(in_parts(_ascend, (indptr, indices), bounds)):
        return np.empty(0, dtype=indices.dtype)
    order = np.empty(len(indices), dtype=indices.dtype)
    on_threads(lambda first, last: sort_columns(indptr, indices, first, last, order), bounds)
    return order


def _offsets(indptr: NDArray[Any], indices: NDArray[Any], order: NDArray[Any]) -> NDArray[Any]:
    """Return the offsets of the diagonals, or refuse them as soon as they are found to be too many."""
    rows, nnz = len(indptr) - 1, len(indices)
    most = int(MAX_PADDING_FACTOR * nnz) // max(rows, 1)
    found = in_parts(_collect_offsets, (indptr, indices, order, most), balanced_parts(indptr))
    offsets: NDArray[Any] = reduce(_merged, found)
    if len(offsets) > most:
        raise PaddingError(
            f"DIA would store {len(offsets):,} diagonals or more of {rows:,} rows for {nnz:,} non-zeros: "
            f"expected at most {MAX_PADDING_FACTOR:g} times the non-zeros; use another format"
        )
    return offsets.astype(indices.dtype)


@njit(nogil=True, cache=True)
def _ascend(indptr, indices, first, last):  # type: ignore[no-untyped-def]
    """Tell whether no column of the rows `first` to `last` - 1 is less than the one before it in its row."""
    descents = 0
    for i in range(first, last):
        for k in range(indptr[i] + _ONE, indptr[i + _ONE]):
            descents += indices[k] < indices[k - _ONE]
    return descents == 0


@njit(nogil=True, cache=True)
def _entry(order, k):  # type: ignore[no-untyped-def]
    return _U64(order[k]) if len(order) else _U64(k)


@njit(nogil=True, cache=True)
def _collect_offsets(indptr, indices, order, most, first, last):  # type: ignore[no-untyped-def]
    """Return ascending offsets among which each row finds all its own, until they are more than `most`.

    An offset is there as often as the row that repeats it most has it.
    """
    offsets = np.empty(0, dtype=np.int64)
    for i in range(first, last):
        start, end = _U64(indptr[i]), _U64(indptr[i + _ONE])
        j, count = _U64(0), _U64(len(offsets))
        is_missing = False
        for k in range(start, end):
            offset = np.int64(indices[_entry(order, k)]) - np.int64(i)
            while j < count and offsets[j] < offset:
                j += _ONE
            if j == count or offsets[j] != offset:
                is_missing = True
                break
            j += _ONE
        if is_missing:
            own = np.empty(end - start, dtype=np.int64)
            for k in range(start, end):
                own[k - start] = np.int64(indices[_entry(order, k)]) - np.int64(i)
            offsets = _merged(offsets, own)
            if len(offsets) > most:
                break
    return offsets


@njit(nogil=True, cache=True)
def _merged(one, other):  # type: ignore[no-untyped-def]
    """Return the numbers of two ascending arrays, each as often as the array that has it most often."""
    merged = np.empty(len(one) + len(other), dtype=np.int64)
    i, j, count = 0, 0, 0
    while i < len(one) or j < len(other):
        take_one = j == len(other) or (i < len(one) and one[i] <= other[j])
        take_other = i == len(one) or (j < len(other) and other[j] <= one[i])
        merged[count] = one[i] if take_one else other[j]
        i, j, count = i + take_one, j + take_other, count + 1
    return merged[:count].copy()


@njit(nogil=True, cache=True)
def _fill_chunks(  # type: ignore[no-untyped-def]
    indptr, indices, data, order, offsets, values, present, first, last
):
    rows, diagonals, chunk_rows = _U64(len(indptr) - 1), _U64(len(offsets)), _U64(8 * present.itemsize)
    for chunk in range(first, last):
        row = chunk * chunk_rows
        height = min(chunk_rows, rows - row)
        start = row * diagonals
        for k in range(start, start + height * diagonals):
            values[k] = 0
        for diagonal in range(diagonals):
            present[chunk, diagonal] = 0
        for lane in range(height):
            j = _U64(0)
            for k in range(indptr[row + lane], indptr[row + lane + _ONE]):
                at = _entry(order, k)
                # Offsets wrap around below 0, both alike.
                offset = indices.dtype.type(_U64(indices[at]) - (row + lane))
                while offsets[j] != offset:
                    j += _ONE
                values[start + j * height + lane] = data[at]
                present[chunk, j] = _U64(present[chunk, j]) | _ONE << lane
                j += _ONE


@njit(nogil=True, cache=True)
def _count_rows(present, indptr, first, last):  # type: ignore[no-untyped-def]
    """Write the entries of each row behind its place in `indptr`."""
    rows, chunk_rows = _U64(len(indptr) - 1), _U64(8 * present.itemsize)
    for chunk in range(first, last):
        row = chunk * chunk_rows
        for j in range(_U64(present.shape[1])):
            bits = _U64(present[chunk, j])
            for lane in range(min(chunk_rows, rows - row)):
                indptr[row + lane + _ONE] += (bits >> lane) & _ONE


@njit(nogil=True, cache=True)
def _empty_chunks(  # type: ignore[no-untyped-def]
    indptr, indices, data, order, offsets, values, present, first, last
):
    rows, diagonals, chunk_rows = _U64(len(indptr) - 1), _U64(len(offsets)), _U64(8 * present.itemsize)
    for chunk in range(first, last):
        row = chunk * chunk_rows
        height = min(chunk_rows, rows - row)
        for lane in range(height):
            k = _U64(indptr[row + lane])
            for j in range(diagonals):
                if (_U64(present[chunk, j]) >> lane) & _ONE:
                    at = _entry(order, k)
                    indices[at] = row + lane + _U64(offsets[j])
                    data[at] = values[row * diagonals + j * height + lane]
                    k += _ONE
