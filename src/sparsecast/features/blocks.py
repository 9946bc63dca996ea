"""Blocks: growth of a matrix that is stored in aligned square blocks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from sparsecast.features import FEATURES
from sparsecast.features.analysis import MatrixSource
from sparsecast.features.feature_group import FeatureGroup
from sparsecast.features.sweep import Indices, spread_entries
from sparsecast.system.integers import GOLDEN, unsigned
from sparsecast.system.jit import inner, njit

#: Square block sizes whose fill is estimated.
BLOCK_SIZES: tuple[int, ...] = (2, 3, 4, 6, 8)

#: Rows, and columns, that a whole number of blocks of every size spans.
_SPAN = math.lcm(*BLOCK_SIZES)
#: Row i of a span is in block _BLOCK_OF[size, i]; columns alike.
_BLOCK_OF = np.array([np.arange(_SPAN) // size for size in BLOCK_SIZES], dtype=np.uint64)
_BLOCKS_A_SPAN = np.array([_SPAN // size for size in BLOCK_SIZES], dtype=np.uint64)
#: Greatest number of entries with exact block fill. Above it: the greatest number of draws, and the share of
#: the entries that is read, or the number if that is more.
_EXACT_FILL_NNZ, _FILL_DRAWS, _FILL_SHARE, _FILL_ENTRIES = 2**16, 1024, 1 / 128, 2**15
#: Entries read of a group of rows of a large matrix: more than a full span has.
_FILL_BUFFER = 1024

_ZERO, _ONE = np.uint64(0), np.uint64(1)
_ALL_BITS = np.uint64(2**64 - 1)


@FEATURES.register("blocks")
@dataclass(frozen=True, slots=True)
class Blocks(FeatureGroup):
    """Fill of dense blocks.

    For each size b of BLOCK_SIZES, `fill` is the number of values stored in aligned b x b blocks over nnz: at
    least 1, and 1 without entries.
    """

    name: ClassVar[str] = "blocks"

    fill: tuple[float, ...]

    @classmethod
    def compute(cls, source: MatrixSource) -> Self:
        """Return the features of a matrix; above 65,536 entries they are estimated.

        Groups of 24 rows are drawn with a chance proportional to their entries. Of a long group only a
        scattered selection of columns is read.
        """
        return cls(block_fill(source.indptr, source.indices))

    def contradiction(self, rows: int, cols: int, nnz: int) -> str | None:
        if len(self.fill) != len(BLOCK_SIZES):
            return f"the fill is that of {len(self.fill)} block sizes, not {len(BLOCK_SIZES)}"
        for size, fill in zip(BLOCK_SIZES, self.fill, strict=True):
            if not 0.999 <= fill <= size * size * 1.001:
                return f"blocks of {size}x{size} store {fill:g} values a non-zero"
        return None


def block_fill(indptr: Indices, indices: Indices) -> tuple[float, ...]:
    """Return stored values over entries for every block size, as a mean over drawn groups of rows.

    An entry drawn at random is in group g with chance entries(g) / nnz, so the mean of stored(g) /
    entries(g) over the groups of drawn entries estimates the sum of stored(g) over nnz (Hansen and
    Hurwitz 1943). Where every entry is drawn it equals that.
    """
    nnz = indices.size
    if nnz == 0:
        return (1.0,) * len(BLOCK_SIZES)
    exact = nnz <= _EXACT_FILL_NNZ
    draws = nnz if exact else _FILL_DRAWS
    entries = spread_entries(draws, nnz).astype(indptr.dtype)
    groups = (np.searchsorted(indptr, entries, side="right") - 1) // _SPAN
    if not exact:  # as many draws as keep the cost of reading entries within bounds
        ends = np.minimum((groups + 1) * _SPAN, indptr.size - 1)
        of_group = indptr[ends].astype(np.int64) - indptr[groups * _SPAN]
        # All entries of a long group are traversed to find the selected ones, at a sixteenth of the cost.
        cost = np.minimum(of_group, _FILL_BUFFER) + of_group // 16
        stride = max(1, round(float(cost.sum()) / max(_FILL_SHARE * nnz, _FILL_ENTRIES)))
        entries, groups = entries[::stride], groups[::stride]
    groups, drawn, hits = np.unique(groups, return_index=True, return_counts=True)
    wanted = indices[entries[drawn]].astype(np.uint64)
    arrays = unsigned(indptr), unsigned(indices)
    blocks = np.zeros((groups.size, len(BLOCK_SIZES) + 1), dtype=np.int64)
    places = np.zeros((3, _EXACT_FILL_NNZ if exact else _FILL_BUFFER), dtype=np.uint64)
    table = np.zeros(2 * places.shape[1], dtype=np.uint64)
    _count_blocks(arrays, groups, wanted, places, table, blocks)
    stored = blocks[:, :-1] * np.square(BLOCK_SIZES)
    shares = stored * (hits / (hits.sum() * blocks[:, -1]))[:, np.newaxis]
    return tuple(shares.sum(axis=0).tolist())


@njit(cache=True, nogil=True)
def _count_blocks(arrays, groups, wanted, places, table, blocks):
    """Write, for every group of rows, its distinct blocks of each size and the entries read."""
    for group in range(groups.size):
        blocks_found = _gather(arrays, groups[group], wanted[group], places)
        for place in range(blocks_found):
            span = places[1, place] // np.uint64(_SPAN)
            places[1, place], places[2, place] = span, places[1, place] - span * np.uint64(_SPAN)
        blocks[group, len(_BLOCK_OF)] = blocks_found
        width = 1
        while width < 2 * blocks_found:
            width *= 2
        for size in range(len(_BLOCK_OF)):
            blocks[group, size] = _distinct_blocks(places[:, :blocks_found], size, table[:width])


@inner
def _gather(arrays, group, wanted, places):
    """List row and column of a group's entries; of ever fewer of its columns while they are too many.

    Columns are selected by their aligned span, so blocks stay whole; the span of `wanted` is always selected.
    """
    indptr, indices = arrays
    first_row = group * _SPAN
    count, mask, wanted = 0, _ZERO, _scattered(wanted)
    for row in range(min(_SPAN, indptr.size - 1 - first_row)):
        for entry in range(np.uint64(indptr[first_row + row]), np.uint64(indptr[first_row + row + 1])):
            column = np.uint64(indices[entry])
            bits = _scattered(column) ^ wanted
            while count == places.shape[1] and mask != _ALL_BITS and bits & mask == _ZERO:
                mask = mask << _ONE | _ONE
                count = _thin(places, wanted, mask)
            if count < places.shape[1] and bits & mask == _ZERO:
                places[0, count], places[1, count] = np.uint64(row), column
                count += 1
    return count


@inner
def _scattered(column):
    """Return irregular bits of a column's span: a regular selection could match the pattern of a mesh."""
    bits = (column // np.uint64(_SPAN) + _ONE) * GOLDEN
    return bits ^ bits >> np.uint64(32)


@inner
def _thin(places, wanted, mask):
    kept = 0
    for place in range(places.shape[1]):
        if (_scattered(places[1, place]) ^ wanted) & mask == _ZERO:
            places[0, kept], places[1, kept] = places[0, place], places[1, place]
            kept += 1
    return kept


@inner
def _distinct_blocks(places, size, table):
    """Return the distinct blocks of one size among the places, with a hash table of a power of two slots.

    A place is a row of the group, a span of columns, and a column of the span.
    """
    table[:] = _ZERO
    last_slot = np.uint64(table.size - 1)
    distinct, before = 0, _ZERO
    for place in range(places.shape[1]):
        column = places[1, place] * _BLOCKS_A_SPAN[size] + _BLOCK_OF[size, places[2, place]]
        # A group has at most 12 block rows; 0 marks a free slot.
        key = (column << np.uint64(4) | _BLOCK_OF[size, places[0, place]]) + _ONE
        if key == before:
            continue
        before = key
        slot = ((key * GOLDEN) >> np.uint64(32)) & last_slot
        while table[slot] != _ZERO and table[slot] != key:
            slot = (slot + _ONE) & last_slot
        distinct += table[slot] == _ZERO
        table[slot] = key
    return distinct
