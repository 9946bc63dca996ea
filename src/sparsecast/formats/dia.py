"""DIA: the diagonals with an entry, without column indices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.errors import PaddingError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats import FORMATS
from sparsecast.formats.csr import CSR
from sparsecast.formats.storage_format import MAX_PADDING_FACTOR, Integers, StorageFormat
from sparsecast.system.integers import unsigned
from sparsecast.system.jit import njit
from sparsecast.system.memory import aligned_empty
from sparsecast.system.parallel import balanced_parts, in_parts

#: Bytes of one diagonal in one chunk: as many sums as fit in registers. From 16 rows on the number made no
#: difference beyond the noise; with 8, stencils were slower in cache (`benchmarks/run.py dia-chunks` of
#: commit 92e4a5d6).
CHUNK_BYTES = 256

#: Rows that are compared at once.
_GROUP = 16

_U64 = np.uint64
_ONE = _U64(1)


@FORMATS.register("dia")
@dataclass(frozen=True)
class DIA(StorageFormat):
    """Diagonals in chunks of rows: in each chunk the values of the first diagonal, then of the second.

    A product then streams one array from end to end. The values of row i on the diagonal of offset d are
    multiplied by x[i + d]. Every diagonal is stored in all rows; outside the matrix its values are 0 and no
    kernel multiplies them. Padding inside the matrix may read an x that is not in its row: a non-finite x
    there gives NaN in every row that its diagonals cross, as in other libraries.

    Source: the diagonal format of Saad (2003), Iterative Methods for Sparse Linear Systems, section 3.4.
    """

    name: ClassVar[str] = "dia"
    benchmark_kinds: ClassVar[tuple[str, ...]] = ("diagonals",)
    predicted_from_rows: ClassVar[bool] = False
    pads_with_own_columns: ClassVar[bool] = False
    relies_on: ClassVar[tuple[str, ...]] = ("bands",)

    chunk_rows: int  # rows of a chunk; the last one may have fewer
    offsets: NDArray[Any]  # column minus row of each diagonal, ascending: shape (diagonals,)
    #: Shape (rows * diagonals,): the value of the chunk's row i on diagonal j is at the chunk's start + j *
    #: (rows of the chunk) + i.
    data: NDArray[Any]

    @classmethod
    def from_csr(cls, A: csr_array[Any]) -> Self:
        """Return `A` in diagonals, which are counted before they are allocated."""
        chunk_rows, rows, nnz = CHUNK_BYTES // A.data.itemsize, A.shape[0], int(A.indptr[-1])
        most = int(MAX_PADDING_FACTOR * nnz) // max(rows, 1)
        is_there = np.zeros(sum(A.shape), dtype=np.uint8)  # for each column - row + rows - 1
        count = _count_diagonals(unsigned(A.indptr), unsigned(A.indices[:nnz]), is_there, most)
        if count > most:
            raise PaddingError(
                f"DIA would store {count:,} diagonals or more of {rows:,} rows for {nnz:,} non-zeros: "
                f"expected at most {MAX_PADDING_FACTOR:g} times the non-zeros; use another format"
            )
        offsets = (np.flatnonzero(is_there) - (rows - 1)).astype(A.indices.dtype)
        stored = rows * len(offsets)
        cls.refuse_excess(nnz, stored, stored * A.data.itemsize + offsets.nbytes)
        places = np.cumsum(is_there, dtype=np.int32)
        places -= 1
        del is_there
        data = aligned_empty(stored, A.data.dtype)
        sizes = _U64(chunk_rows), _U64(len(offsets))
        arrays = (A.indptr, A.indices, A.data, places, data, *sizes)
        first_rows = np.append(np.arange(0, rows, chunk_rows), rows)
        in_parts(_fill_chunks, arrays, balanced_parts(A.indptr[first_rows]))
        return cls(A.shape, nnz, chunk_rows, offsets, data)

    @property
    def chunks(self) -> int:
        return -(-self.shape[0] // self.chunk_rows)

    @classmethod
    def stored_entries(cls, blocks: RowBlocks, **how: Any) -> Integers:
        """Return rows times the diagonals of the matrix; a row block counts as a small copy of the matrix."""
        return np.asarray(blocks.rows * blocks.matrix.bands.diagonals)

    @classmethod
    def row_end_work(cls, blocks: RowBlocks, **how: Any) -> dict[str, NDArray[Any]]:
        """Return the diagonals: a chunk that one of them enters or leaves is computed row by row."""
        count = 0 if blocks.matrix.lacks(["bands"]) else blocks.matrix.bands.diagonals
        return {"diagonals": np.full(len(blocks.rows), count)}

    @classmethod
    def predicted_bytes(cls, blocks: RowBlocks, value_bytes: int, index_bytes: int, **how: Any) -> Integers:
        offsets = blocks.matrix.bands.diagonals * index_bytes
        return np.asarray(cls.stored_entries(blocks) * value_bytes + offsets)

    @classmethod
    def working_bytes(cls, blocks: RowBlocks, value_bytes: int, index_bytes: int, **how: Any) -> Integers:
        """Return the number of each possible diagonal among those that are there."""
        return np.asarray(4 * (blocks.rows + blocks.matrix.cols))

    @classmethod
    def refuse_unsuited(cls, blocks: RowBlocks, value_bytes: int, index_bytes: int) -> None:
        how = f"on {blocks.matrix.bands.diagonals:,} diagonals"
        cls.refuse_unless_below(CSR, blocks, value_bytes, index_bytes, how)


@njit(nogil=True, cache=True)
def _count_diagonals(indptr, indices, is_counted, most):
    """Count the diagonals until they exceed `most`; `is_counted` has an element for each, all 0.

    Most rows of a mesh have the diagonals of the row before, so many rows are compared with these at once.
    """
    rows, count, row = _U64(len(indptr) - 1), 0, _U64(0)
    while row < rows and count <= most:
        end = min(row + _U64(_GROUP), rows)
        first, stop = _U64(indptr[row]), _U64(indptr[end])
        length = first - _U64(indptr[row - min(row, _ONE)])
        differing = _U64(row == _U64(0))
        for neighbour in range(row, end):
            differing |= _U64(indptr[neighbour + _ONE]) - _U64(indptr[neighbour]) ^ length
        if differing == _U64(0):
            for entry in range(first, stop):
                differing |= _U64(indices[entry]) ^ _U64(indices[entry - length]) + _ONE
        if differing != _U64(0):
            for neighbour in range(row, end):
                shift, counted = rows - _ONE - neighbour, np.uint8(1)
                for entry in range(_U64(indptr[neighbour]), _U64(indptr[neighbour + _ONE])):
                    counted &= is_counted[_U64(indices[entry]) + shift]
                if counted == 0:
                    for entry in range(_U64(indptr[neighbour]), _U64(indptr[neighbour + _ONE])):
                        count += is_counted[_U64(indices[entry]) + shift] == 0
                        is_counted[_U64(indices[entry]) + shift] = 1
        row = end
    return count


@njit(nogil=True, cache=True)
def _fill_chunks(indptr, indices, data, places, values, chunk_rows, diagonals, first, last):
    """Write the diagonals of the chunks first to last - 1; entries of one column are summed."""
    rows = _U64(len(indptr) - 1)
    for chunk in range(first, last):
        row = chunk * chunk_rows
        height = min(chunk_rows, rows - row)
        start = row * diagonals
        for k in range(start, start + height * diagonals):
            values[k] = 0
        for lane in range(height):
            shift = rows - _ONE - (row + lane)
            for k in range(indptr[row + lane], indptr[row + lane + _ONE]):
                diagonal = _U64(places[_U64(indices[k]) + shift])
                values[start + diagonal * height + lane] += data[k]
