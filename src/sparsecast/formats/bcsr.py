"""BCSR: compressed sparse rows of small dense blocks."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import _sparsetools, csr_array

from sparsecast.errors import InputError
from sparsecast.features.blocks import BLOCK_SIZES, block_fill
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.structure import Structure
from sparsecast.formats import FORMATS
from sparsecast.formats.csr import CSR
from sparsecast.formats.narrowing import VALUES, Narrow, refuse
from sparsecast.formats.storage_format import Integers, StorageFormat
from sparsecast.system.jit import inner, njit
from sparsecast.system.memory import aligned_empty
from sparsecast.system.parallel import balanced_parts, in_parts

#: Heights and widths of blocks: the sizes of OSKI's register blocking that Gahvari et al. (2007) use.
BLOCK_SIDES = (1, 2, 3, 4, 6, 8)

#: Bytes of a value and of an index in the rule, whatever the types of the matrix: so the same size is chosen
#: for every type.
_VALUE_BYTES, _INDEX_BYTES = 8, 4

#: Bytes that one instruction of a processor loads.
_REGISTER_BYTES = 32

_ZERO, _ONE = np.uint64(0), np.uint64(1)
_NO_COLUMN = np.uint64(2**64 - 1)


@FORMATS.register("bcsr")
@dataclass(frozen=True)
class BCSR(StorageFormat):
    """Dense blocks of r rows and c columns, aligned at multiples of r and c, padded with zeros.

    Source: the register blocking of SPARSITY (Im, Yelick, Vuduc 2004). Every size of BLOCK_SIDES x
    BLOCK_SIDES can be requested. By default, `best_block` takes the square size with the fewest bytes, by a
    fill that is estimated on sampled rows before the conversion, as in SPARSITY. Only the squares of
    BLOCK_SIZES compete: a Structure holds their fill, so that forecast and conversion choose the same size.

    The last column of blocks is shifted left to end with the matrix, so nothing beyond x is read; its entries
    keep their columns. The last row of blocks may have rows beyond the matrix, which no kernel computes. A
    padded entry may read an x that is not in its row: a non-finite x there gives NaN in every row of the
    block, as in other libraries.
    """

    name: ClassVar[str] = "bcsr"
    benchmark_kinds: ClassVar[tuple[str, ...]] = ("blocks",)
    predicted_from_rows: ClassVar[bool] = False
    pads_with_own_columns: ClassVar[bool] = False
    narrow_parameters: ClassVar[Mapping[str, tuple[Any, ...]]] = {"values": VALUES[1:]}

    #: The format that streams more if this one suits a matrix.
    plain_format: ClassVar[type[StorageFormat]] = CSR

    block: tuple[int, int]  # rows r and columns c of a block
    starts: NDArray[Any]  # the first block of each row of blocks, and their number: shape (block rows + 1,)
    columns: NDArray[Any]  # first column of each block, ascending within a row of blocks: shape (blocks,)
    #: The blocks' values, each block row by row: shape (blocks * r * c,). Narrow ones are as in Narrow;
    #: columns are few, and padding makes values differ, so nothing else is stored narrower.
    data: NDArray[Any]

    @classmethod
    def from_csr(
        cls, A: csr_array[Any], block: tuple[int, int] | None = None, values: str | None = None
    ) -> Self:
        """Return `A` in blocks of one size.

        `block` are the rows and columns of one, each of BLOCK_SIDES, else an InputError is raised; without
        it, `best_block` chooses. `values` is as in Narrow; not ``"one"``.
        """
        nnz = int(A.indptr[-1])
        # A matrix remembers what SciPy found before somebody changed the indices.
        if not _sparsetools.csr_has_sorted_indices(A.shape[0], A.indptr, A.indices):
            A = A.copy()
            A.has_sorted_indices = False
            A.sort_indices()
        if block is None:
            block = best_blocks(A)
        elif len(block) != 2 or not set(block) <= set(BLOCK_SIDES):
            raise InputError(
                f"block {block}: expected rows and columns of {', '.join(map(str, BLOCK_SIDES))}; "
                f"name such a size, or none"
            )
        block = int(block[0]), int(block[1])
        return cls(A.shape, nnz, block, *cls._cut(A, A.indptr[1:], block, values), values=values)

    @classmethod
    def _cut(
        cls, A: csr_array[Any], ends: NDArray[Any], block: tuple[int, int], values: str | None
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return `starts`, `columns` and `data` of the entries of each row before its one of `ends`."""
        narrow = Narrow(values)
        if values == "one":
            refuse(f"{cls.name.upper()} without values", "values, since its padding has others")
        r, c = block
        nnz, rows = int(A.indptr[-1]), A.shape[0]
        indices, block_rows = A.indices[:nnz], -(-rows // r)
        bounds = balanced_parts(A.indptr[np.minimum(np.arange(block_rows + 1) * r, rows)])
        starts = np.zeros(block_rows + 1, dtype=indices.dtype)
        # Two sequences as long as a block is high and wide. The lengths of tuples are in their types, so such
        # a size is compiled separately, and runs faster. Sizes that no rule chooses are not worth that
        # second: arrays of any length have one type.
        size: tuple[Any, Any] = (0,) * r, (0,) * c
        if r != c or r not in BLOCK_SIZES:
            size = np.empty(r, dtype=np.int8), np.empty(c, dtype=np.int8)
        arrays, edge = (A.indptr, ends, indices, A.data, *size), np.uint64(max(A.shape[1] - c, 0))
        nothing = np.empty(0, indices.dtype), np.empty(0, A.data.dtype)
        in_parts(_blocks, (*arrays, (), starts, edge, *nothing), bounds)
        np.cumsum(starts, out=starts)
        blocks = int(starts[-1])
        stored = blocks * r * c
        cls.refuse_excess(nnz, stored, stored * A.data.itemsize + blocks * indices.itemsize + starts.nbytes)
        columns = np.empty(blocks, dtype=indices.dtype)
        data = aligned_empty(stored, A.data.dtype)
        in_parts(_blocks, (*arrays, (0,), starts, edge, columns, data), bounds)
        return starts, columns, narrow.stored_values(data)

    @classmethod
    def compiled_for(cls, matrix: Structure) -> dict[str, Any]:
        side = best_block(matrix.blocks.fill)
        return {"block": (side, side)}

    @classmethod
    def stored_entries(cls, blocks: RowBlocks, **how: Any) -> Integers:
        """Return the values in blocks of the size that `best_block` chooses for the whole matrix.

        Exact for a whole matrix of up to 65,536 entries; otherwise an estimate, with the fill of the matrix
        for each row block.
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
    def row_end_work(cls, blocks: RowBlocks, **how: Any) -> dict[str, NDArray[Any]]:
        """Return the small dense blocks, and the loads of their values: their number depends on the size.

        A row of a block is loaded in pieces of a power of two bytes, of _REGISTER_BYTES at most.
        """
        count, side = cls.stored_blocks(blocks), best_block(blocks.matrix.blocks.fill)
        whole, rest = divmod(side * _VALUE_BYTES, _REGISTER_BYTES)
        return {"blocks": count, "loads": count * side * (whole + rest.bit_count())}

    @classmethod
    def predicted_bytes(cls, blocks: RowBlocks, value_bytes: int, index_bytes: int, **how: Any) -> Integers:
        side = best_block(blocks.matrix.blocks.fill)
        indices = cls.stored_blocks(blocks) - (-blocks.rows // side) + 1
        value_bytes, _ = Narrow(**how).streamed_bytes(value_bytes, index_bytes)
        return np.asarray(cls.stored_entries(blocks) * value_bytes + indices * index_bytes)

    @classmethod
    def working_bytes(cls, blocks: RowBlocks, value_bytes: int, index_bytes: int, **how: Any) -> Integers:
        """Return the values in full, of which narrow ones are made."""
        return cls.stored_entries(blocks) * (value_bytes if how.get("values") else 0)

    @classmethod
    def refuse_unsuited(cls, blocks: RowBlocks, value_bytes: int, index_bytes: int) -> None:
        super().refuse_unsuited(blocks, value_bytes, index_bytes)
        side = best_block(blocks.matrix.blocks.fill)
        how = f"in blocks of {side} x {side}, the best of its squares"
        cls.refuse_unless_below(cls.plain_format, blocks, value_bytes, index_bytes, how)


def best_blocks(A: csr_array[Any]) -> tuple[int, int]:
    """Return the rows and columns of the blocks for a matrix with ascending columns."""
    side = best_block(block_fill(A.indptr, A.indices[: A.indptr[-1]]))
    return side, side


@functools.lru_cache(maxsize=16)  # a forecast asks many times
def best_block(fill: tuple[float, ...]) -> int:
    """Return the side of the square blocks with the fewest bytes per entry of the matrix.

    A product of b x b blocks streams fill(b) values per entry and one index per b * b of them: fill(b) * (8 +
    4 / b**2) bytes. Beyond the nearest caches the bytes decide the time, so no measured table of the machine
    is needed, as in SPARSITY. `fill` has the stored values over entries, for each size of BLOCK_SIZES.
    """
    streamed = [
        values * (_VALUE_BYTES + _INDEX_BYTES / side**2)
        for values, side in zip(fill, BLOCK_SIZES, strict=True)
    ]
    return BLOCK_SIZES[int(np.argmin(streamed))]


@inner
def _enter(indptr, ends, indices, first_row, heads):
    """Point `heads` at the first entries of a block row's rows; return the rows and the least column."""
    height = min(np.uint64(len(heads)), np.uint64(len(ends)) - first_row)
    least = _NO_COLUMN
    for row in range(height):
        heads[row] = indptr[first_row + row]
        if heads[row] < np.uint64(ends[first_row + row]):
            least = min(least, np.uint64(indices[heads[row]]))
    return height, least


@inner
def _is_full(indices, k, end, start, c):
    """Tell whether the entries from `k` on fill a row of the block at column `start`, as they mostly do."""
    if k + c > end:
        return False
    differing = _ZERO
    for column in range(c):
        differing |= np.uint64(indices[k + column]) ^ (start + column)
    return differing == _ZERO


@njit(nogil=True, cache=True)
def _blocks(indptr, ends, indices, data, height, width, fills, starts, edge, columns, values, first, last):
    """Write the number of blocks of each block row behind its place in `starts`, or with `fills` the blocks.

    Each step takes the block of the least remaining column, and the entries of every row in it, before its
    one of `ends`. None begins beyond column `edge`. The size, and whether blocks are written, are in the
    types of the tuples `height`, `width` and `fills`, so the compiler knows them.
    """
    r, c = np.uint64(len(height)), np.uint64(len(width))
    heads = np.empty(len(height), dtype=np.uint64)
    for i in range(first, last):
        within, least = _enter(indptr, ends, indices, i * r, heads)
        block = np.uint64(starts[i]) if len(fills) else _ZERO
        while least != _NO_COLUMN:
            start = least // c * c
            beyond, least = start + c, _NO_COLUMN
            shifted = min(start, edge) if len(fills) else start
            if len(fills):
                columns[block] = shifted
                for place in range(block * r * c, (block + _ONE) * r * c):
                    values[place] = 0
            for row in range(within):
                k, end = heads[row], np.uint64(ends[i * r + row])
                target = (block * r + row) * c
                if shifted == start and _is_full(indices, k, end, start, c):
                    if len(fills):
                        for j in range(c):
                            values[target + j] = data[k + j]
                    k += c
                while k < end:
                    column = np.uint64(indices[k])
                    if column >= beyond:
                        least = min(least, column)
                        break
                    if len(fills):
                        values[target + column - shifted] += data[k]
                    k += _ONE
                heads[row] = k
            block += _ONE
        if len(fills) == 0:
            starts[i + _ONE] = block
