"""BCSR: compressed sparse rows of small dense blocks."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.errors import InputError
from sparsecast.features.blocks import BLOCK_SIZES, block_fill
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats import FORMATS
from sparsecast.formats.storage_format import StorageFormat
from sparsecast.system.integers import unsigned
from sparsecast.system.jit import njit
from sparsecast.system.memory import aligned_empty
from sparsecast.system.parallel import balanced_parts, in_parts, on_threads

#: What a block may be high and wide: the sizes of OSKI's register blocking that Gahvari et al. (2007) use.
BLOCK_SIDES = (1, 2, 3, 4, 6, 8)

#: Bytes of a value and of an index that the rule weighs fill with, whatever the types of the matrix: so the
#: same size is chosen for every type, and before the types are known.
_VALUE_BYTES, _INDEX_BYTES = 8, 4

_ZERO, _ONE = np.uint64(0), np.uint64(1)
_NO_COLUMN = np.uint64(2**64 - 1)


@FORMATS.register("bcsr")
@dataclass(frozen=True)
class BCSR(StorageFormat):
    """Dense blocks of r rows and c columns, aligned at multiples of r and c, padded with zeros.

    Source: the register blocking of SPARSITY (Im, Yelick, Vuduc 2004). Every size of BLOCK_SIDES x
    BLOCK_SIDES can be built on request. Without one, the rule of `best_block` takes the square size that
    streams the fewest bytes, by a fill that is estimated on sampled rows before anything is converted, as
    SPARSITY does. Only squares of BLOCK_SIZES compete, whose fill a Structure holds, so that a forecast,
    which sees no more than a Structure, and a conversion choose the same.

    The last column of blocks is shifted left so that it ends with the matrix, and reads nothing beyond x;
    its entries keep their columns. The last row of blocks has rows beyond the matrix that no kernel
    computes. A padded entry reads an x that its row need not have: a non-finite x there gives NaN in
    every row of the block, as it does in other libraries.

    Attributes
    ----------
    block : (int, int)
        Rows r and columns c of a block.
    starts : integer array of shape (block rows + 1,)
        The first block of each row of blocks, and their number.
    columns : integer array of shape (blocks,)
        First column of each block, ascending within a row of blocks. Duplicate entries of the matrix
        stand in blocks of the same column, one after the other, which no forecast sees: many of them are
        better summed first.
    data : array of shape (blocks * r * c,)
        The blocks' values, each block row by row.
    present : uint8 array of shape (blocks, r)
        For each row of each block, bits that tell entries from padding: r bytes a block, for r c
        values. Only `to_csr` reads it.
    order : integer array of shape (nnz,) or (0,)
        Where the matrix had each entry, in the order of ascending columns; empty where it had them so.
        Only `to_csr` reads it.
    """

    name: ClassVar[str] = "bcsr"
    benchmark_kinds: ClassVar[tuple[str, ...]] = ("blocks",)
    unstreamed: ClassVar[tuple[str, ...]] = ("present", "order")
    predicted_from_rows: ClassVar[bool] = False
    pads_with_own_columns: ClassVar[bool] = False

    block: tuple[int, int]
    starts: NDArray[Any]
    columns: NDArray[Any]
    data: NDArray[Any]
    present: NDArray[np.uint8]
    order: NDArray[Any]

    @classmethod
    def from_csr(cls, A: csr_array[Any], block: tuple[int, int] | None = None) -> Self:
        """Return `A` in blocks of one size.

        Parameters
        ----------
        block : (int, int), optional
            Rows and columns of a block, each one of BLOCK_SIDES; without it, `best_block` chooses.

        Raises
        ------
        InputError
            If `block` is none of the sizes.
        """
        nnz = int(A.indptr[-1])
        indices = A.indices[:nnz]
        if block is None:
            side = best_block(block_fill(A.indptr, indices))
            block = side, side
        r, c = _checked(block)
        rows = _Rows(A.indptr, indices, A.shape, (r, c))
        starts = rows.count()
        blocks = int(starts[-1])
        stored = blocks * r * c
        size = stored * A.data.itemsize + blocks * (A.indices.itemsize + r) + starts.nbytes
        cls.refuse_excess(nnz, stored, size + rows.order.nbytes)
        columns = np.empty(blocks, dtype=A.indices.dtype)
        data = aligned_empty(stored, A.data.dtype)
        present = np.empty((blocks, r), dtype=np.uint8)
        rows.fill(A.data, starts, (columns, data, present))
        return cls(A.shape, nnz, (r, c), starts, columns, data, present, rows.order)

    def to_csr(self) -> csr_array[Any]:
        """Return the matrix without its padding, each entry where it was."""
        indptr = np.zeros(self.shape[0] + 1, dtype=self.starts.dtype)
        bounds = balanced_parts(self.starts.astype(np.int64) * (self.block[0] * self.block[1]))
        in_parts(_count_rows, (self.starts, self.present, indptr), bounds)
        A = self.empty_csr(indptr)
        blocks = (self.starts, self.columns, self.data, self.present, self.order)
        in_parts(_unblock, (*blocks, indptr, A.indices, A.data), bounds)
        return A

    @classmethod
    def stored_entries(cls, blocks: RowBlocks) -> NDArray[np.int64]:
        """Return the values in blocks of the size that `best_block` chooses for the whole matrix.

        Exact for a whole matrix whose fill the Structure counted in full (up to 65,536 entries) and whose
        rows hold no duplicates; otherwise an estimate, which takes the fill of a row block for that of
        the matrix.
        """
        side = best_block(blocks.matrix.blocks.fill)
        return cls.stored_blocks(blocks) * side**2

    @classmethod
    def stored_blocks(cls, blocks: RowBlocks) -> NDArray[np.int64]:
        """Return the number of small dense blocks that hold `stored_entries`."""
        side = best_block(blocks.matrix.blocks.fill)
        fill = blocks.matrix.blocks.fill[BLOCK_SIZES.index(side)]
        return np.asarray(np.rint(blocks.nnz * (fill / side**2)).astype(np.int64))

    @classmethod
    def row_end_work(cls, blocks: RowBlocks) -> dict[str, NDArray[Any]]:
        """Return the small dense blocks: their sizes differ where as many entries are stored."""
        return {"blocks": cls.stored_blocks(blocks)}

    @classmethod
    def predicted_bytes(cls, blocks: RowBlocks, value_bytes: int, index_bytes: int) -> NDArray[np.int64]:
        """Return the size in bytes of each block, exact where `stored_entries` is and rows are sorted."""
        bookkeeping = cls.stored_blocks(blocks) * best_block(blocks.matrix.blocks.fill)
        return np.asarray(bookkeeping + cls._streamed_bytes(blocks, value_bytes, index_bytes))

    @classmethod
    def _streamed_bytes(cls, blocks: RowBlocks, value_bytes: int, index_bytes: int) -> NDArray[np.int64]:
        side = best_block(blocks.matrix.blocks.fill)
        indices = cls.stored_blocks(blocks) - (-blocks.rows // side) + 1
        return np.asarray(cls.stored_entries(blocks) * value_bytes + indices * index_bytes)

    @classmethod
    def refuse_unsuited(cls, blocks: RowBlocks, value_bytes: int, index_bytes: int) -> None:
        """Raise a PaddingError if the best square blocks would stream at least as many bytes as CSR."""
        side = best_block(blocks.matrix.blocks.fill)
        how = f"in blocks of {side} x {side}, the best of its squares"
        streamed = cls._streamed_bytes(blocks, value_bytes, index_bytes)
        cls.refuse_unless_below_csr(blocks, streamed, value_bytes, index_bytes, how)


@functools.lru_cache(maxsize=16)  # a forecast asks many times
def best_block(fill: tuple[float, ...]) -> int:
    """Return the side of the square blocks that stream the fewest bytes for each entry of the matrix.

    A product streams, of b x b blocks, fill(b) values for each entry and one index for every b * b of
    them: fill(b) * (8 + 4 / b**2) bytes. Where the bytes decide the time, as they do beyond the nearest
    caches, no measured table of the machine is needed, in which SPARSITY looks up each size's speed.

    Parameters
    ----------
    fill : tuple of float
        Values stored over entries, for each size of BLOCK_SIZES.
    """
    streamed = [
        each * (_VALUE_BYTES + _INDEX_BYTES / side**2) for each, side in zip(fill, BLOCK_SIZES, strict=True)
    ]
    return BLOCK_SIZES[int(np.argmin(streamed))]


def _checked(block: tuple[int, int]) -> tuple[int, int]:
    if len(block) != 2 or not set(block) <= set(BLOCK_SIDES):
        raise InputError(
            f"block {block}: expected rows and columns of {', '.join(map(str, BLOCK_SIDES))}; "
            f"name such a size, or none"
        )
    return int(block[0]), int(block[1])


def _sized(r: int, c: int) -> tuple[Any, Any]:
    """Return two sequences as long as a block is high and wide, for the compiled functions.

    The lengths of tuples are in their types: such a size is compiled on its own, and runs the faster. Sizes
    that no rule chooses do not deserve that second: arrays of any length are of one type.
    """
    if r == c and r in BLOCK_SIZES:
        return (0,) * r, (0,) * c
    return np.empty(r, dtype=np.int8), np.empty(c, dtype=np.int8)


class _Rows:
    """The rows of a CSR matrix, merged into rows of blocks."""

    def __init__(
        self, indptr: NDArray[Any], indices: NDArray[Any], shape: tuple[int, int], block: tuple[int, int]
    ) -> None:
        self.order, self._index = np.empty(0, dtype=indices.dtype), indices.dtype
        self._rows, self._block, self._cols = (unsigned(indptr), unsigned(indices)), block, shape[1]
        self._size = _sized(*block)
        self._block_rows = -(-shape[0] // block[0])
        first_rows = np.minimum(np.arange(self._block_rows + 1) * block[0], shape[0])
        self._bounds = balanced_parts(indptr[first_rows])

    def count(self) -> NDArray[Any]:
        """Return the first block of each row of blocks, and the number of blocks."""
        starts = np.zeros(self._block_rows + 1, dtype=self._index)

        def count(first: int, last: int) -> bool:
            return bool(_count_blocks(self._rows, self._order, *self._size, first, last, starts))

        if not all(on_threads(count, self._bounds)):
            self.order = np.empty(len(self._rows[1]), dtype=self._index)
            rows = len(self._rows[0]) - 1
            ends = np.minimum(self._bounds * self._block[0], rows)
            on_threads(lambda first, last: sort_columns(*self._rows, first, last, self.order), ends)
            on_threads(count, self._bounds)
        np.cumsum(starts, out=starts)
        return starts

    def fill(self, data: NDArray[Any], starts: NDArray[Any], out: tuple[NDArray[Any], ...]) -> None:
        """Write the columns, values and bits of the blocks."""
        columns, values, present = out
        flat = unsigned(columns), values, present.reshape(-1)
        edge = np.uint64(max(self._cols - self._block[1], 0))

        def fill(first: int, last: int) -> None:
            _fill_blocks(self._rows, self._order, *self._size, first, last, data, starts, edge, flat)

        on_threads(fill, self._bounds)

    @property
    def _order(self) -> NDArray[Any] | None:
        return self.order if len(self.order) else None


@njit(nogil=True, cache=True)
def _entry(order, k):  # type: ignore[no-untyped-def]
    return k if order is None else np.uint64(order[k])


@njit(nogil=True, cache=True)
def _enter(rows, order, first_row, heads):  # type: ignore[no-untyped-def]
    """Point `heads` at the first entries of a block row's rows; return the rows and the least column."""
    indptr, indices = rows
    height = min(np.uint64(len(heads)), np.uint64(len(indptr)) - _ONE - first_row)
    least = _NO_COLUMN
    for row in range(height):
        heads[row] = indptr[first_row + row]
        if heads[row] < np.uint64(indptr[first_row + row + _ONE]):
            least = min(least, np.uint64(indices[_entry(order, heads[row])]))
    return height, least


@njit(nogil=True, cache=True)
def _is_full(indices, order, k, end, start, c):  # type: ignore[no-untyped-def]
    """Tell whether the entries from `k` on fill a row of the block at column `start`: most often they do."""
    if k + c > end:
        return False
    differing = _ZERO
    for column in range(c):
        differing |= np.uint64(indices[_entry(order, k + column)]) ^ (start + column)
    return differing == _ZERO


@njit(nogil=True, cache=True)
def _count_blocks(rows, order, height, width, first, last, starts):  # type: ignore[no-untyped-def]
    """Write the blocks of each block row behind its place in `starts`; tell whether all rows ascend.

    Each step takes the block of the least column that no block has yet, and from every row the entries in
    it. The block's size is in the types of the tuples `height` and `width`, so that the compiler sees it.
    """
    indptr, indices = rows
    r, c = np.uint64(len(height)), np.uint64(len(width))
    heads = np.empty(len(height), dtype=np.uint64)
    descents = _ZERO
    for i in range(np.uint64(first), np.uint64(last)):
        within, least = _enter(rows, order, i * r, heads)
        count = _ZERO
        while least != _NO_COLUMN:
            start = least // c * c
            beyond, least = start + c, _NO_COLUMN
            for row in range(within):
                k, end, after = heads[row], np.uint64(indptr[i * r + row + _ONE]), _ZERO
                if _is_full(indices, order, k, end, start, c):
                    k, after = k + c, beyond
                while k < end:
                    column = np.uint64(indices[_entry(order, k)])
                    # A column for the second time goes into another block of the same columns.
                    if column >= beyond or column < after:
                        if column + _ONE < after:
                            descents += _ONE
                        least = min(least, column)
                        break
                    k, after = k + _ONE, column + _ONE
                heads[row] = k
            count += _ONE
        starts[i + _ONE] = count
    return descents == _ZERO


@njit(nogil=True, cache=True)
def _fill_blocks(rows, order, height, width, first, last, data, starts, edge, out):  # type: ignore[no-untyped-def]
    """Write the blocks that `_count_blocks` counted; none begins beyond column `edge`."""
    indptr, indices = rows
    columns, values, present = out
    r, c = np.uint64(len(height)), np.uint64(len(width))
    heads = np.empty(len(height), dtype=np.uint64)
    for i in range(np.uint64(first), np.uint64(last)):
        within, least = _enter(rows, order, i * r, heads)
        block = np.uint64(starts[i])
        while least != _NO_COLUMN:
            start = least // c * c
            beyond, least = start + c, _NO_COLUMN
            shifted = min(start, edge)
            columns[block] = shifted
            for place in range(block * r * c, (block + _ONE) * r * c):
                values[place] = 0
            present[block * r : (block + _ONE) * r] = 0
            for row in range(within):
                k, end, after = heads[row], np.uint64(indptr[i * r + row + _ONE]), _ZERO
                target, bits = (block * r + row) * c, _ZERO
                if shifted == start and _is_full(indices, order, k, end, start, c):
                    for j in range(c):
                        values[target + j] = data[_entry(order, k + j)]
                    k, after, bits = k + c, beyond, (_ONE << c) - _ONE
                while k < end:
                    at = _entry(order, k)
                    column = np.uint64(indices[at])
                    if column >= beyond or column < after:
                        least = min(least, column)
                        break
                    values[target + column - shifted] = data[at]
                    bits |= _ONE << (column - shifted)
                    k, after = k + _ONE, column + _ONE
                heads[row] = k
                present[block * r + row] = bits
            block += _ONE


@njit(nogil=True, cache=True)
def sort_columns(indptr, indices, first, last, order):  # type: ignore[no-untyped-def]
    """Write the order of ascending columns of rows `first` to `last`, of equal ones as they stand."""
    for i in range(first, last):
        start, end = np.int64(indptr[i]), np.int64(indptr[i + 1])
        order[start:end] = start + np.argsort(indices[start:end], kind="mergesort")


@njit(nogil=True, cache=True)
def _count_rows(starts, present, indptr, first, last):  # type: ignore[no-untyped-def]
    """Write the entries of each row behind its place in `indptr`."""
    r, rows = np.uint64(present.shape[1]), np.uint64(len(indptr) - 1)
    for i in range(first, last):
        for k in range(starts[i], starts[i + _ONE]):
            for row in range(min(r, rows - i * r)):
                bits = present[k, row]
                while bits:
                    bits &= bits - np.uint8(1)
                    indptr[i * r + row + _ONE] += _ONE


@njit(nogil=True, cache=True)
def _unblock(starts, columns, values, present, order, indptr, indices, data, first, last):  # type: ignore[no-untyped-def]
    """Write the entries of the block rows `first` to `last` where the matrix had them."""
    r, rows = np.uint64(present.shape[1]), np.uint64(len(indptr) - 1)
    c = np.uint64(len(values) // max(present.size, 1))
    for i in range(first, last):
        for row in range(min(r, rows - i * r)):
            position = np.uint64(indptr[i * r + row])
            for k in range(np.uint64(starts[i]), np.uint64(starts[i + _ONE])):
                bits = np.uint64(present[k, row])
                for column in range(c):
                    if bits >> column & _ONE:
                        at = np.uint64(order[position]) if len(order) else position
                        indices[at] = columns[k] + column
                        data[at] = values[(k * r + row) * c + column]
                        position += _ONE
