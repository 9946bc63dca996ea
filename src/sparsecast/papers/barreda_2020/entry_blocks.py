"""Entry blocks: what runs of 250 consecutive entries look like, one by one.

Blocks of 250 entries are those of Barreda, Dolz and Castano (2020, section 4.1). Their networks see the
distances between columns and nothing else. What is found here of each block adds the ends of rows, and the
cache lines of x that were not read a short time before. Of a large matrix some blocks are looked at, evenly
spread. The model `blocks` alone reads this, so it is computed on request only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sparsecast.features import FEATURES
from sparsecast.features.analysis import MatrixSource
from sparsecast.features.feature_group import FeatureGroup
from sparsecast.system.jit import inner, njit

#: Entries of a block (Barreda et al., section 4.1).
BLOCK_ENTRIES = 250

#: What is found of each block, as shares of its entries.
BLOCK_FEATURES = (
    "row_ends",
    "length_changes",
    "steps_1",
    "steps_8",
    "steps_64",
    "steps_512",
    "steps_32768",
    "steps_beyond",
    "line_changes",
    "new_lines",
    "following_lines",
    "new_pages",
)

#: Blocks of a matrix that are looked at: one per this number of entries, between these bounds.
ENTRIES_A_SAMPLE, LEAST_SAMPLED, MOST_SAMPLED = 32768, 128, 1024

#: Entries before a block whose lines count as read.
_REMEMBERED = 500

#: Places of the tables that remember lines and pages; a value of x has 8 bytes, a line 64, a page 4096.
_PLACES, _LINE_SHIFT, _PAGE_SHIFT = 2048, 3, 9


@FEATURES.register("entry_blocks")
@dataclass(frozen=True, slots=True)
class EntryBlocks(FeatureGroup):
    """Features of some blocks of entries.

    `shares` are BLOCK_FEATURES of each of `count` blocks, block after block: of all whole blocks of a small
    matrix, and of one with fewer entries than a block has, of these.
    """

    name: ClassVar[str] = "entry_blocks"
    is_usual: ClassVar[bool] = False

    count: int
    shares: tuple[float, ...]

    @classmethod
    def compute(cls, source: MatrixSource) -> Self:
        features = describe_blocks(source.indptr, source.indices, sampled_blocks(source.nnz))
        return cls(len(features), tuple(features.ravel().tolist()))

    @property
    def features(self) -> NDArray[np.float64]:
        """The shares as an array of shape (count, features)."""
        return np.array(self.shares, dtype=np.float64).reshape(self.count, len(BLOCK_FEATURES))

    def summary(self) -> list[tuple[str, str]]:
        shares = self.features
        if not len(shares):
            return []
        ends, new = (
            BLOCK_ENTRIES * shares[:, BLOCK_FEATURES.index(name)] for name in ("row_ends", "new_lines")
        )
        text = (
            f"{len(shares):,} looked at: {ends.min():.0f} to {ends.max():.0f} rows and "
            f"{new.min():.0f} to {new.max():.0f} new lines of x in {BLOCK_ENTRIES}"
        )
        return [("blocks of entries", text)]

    def contradiction(self, rows: int, cols: int, nnz: int) -> str | None:
        if self.count * len(BLOCK_FEATURES) != len(self.shares):
            return f"{self.count:,} blocks of entries have {len(self.shares):,} features"
        if self.count > max(nnz, 0) or (nnz > 0 and not self.count):
            return f"{self.count:,} blocks of entries were looked at"
        # A block may have more rows than entries, because rows may be empty.
        bounded = self.features[:, 2:]
        if not (np.isfinite(self.features).all() and (self.features >= 0).all() and (bounded <= 1).all()):
            return "a share of the entries of a block is not one"
        return None


def sampled_blocks(nnz: int) -> NDArray[np.int64]:
    """Return the numbers of the blocks of a matrix that are looked at."""
    return evenly_spread(
        whole_blocks(nnz), int(np.clip(nnz // ENTRIES_A_SAMPLE, LEAST_SAMPLED, MOST_SAMPLED))
    )


def evenly_spread(blocks: int, most: int) -> NDArray[np.int64]:
    """Return the numbers of at most `most` blocks, evenly spread."""
    count = min(blocks, most)
    return (np.arange(count) * blocks // max(count, 1)).astype(np.int64)


def whole_blocks(nnz: int) -> int:
    """Return the number of blocks: the remainder is dropped, but for fewer entries than a block has."""
    return max(nnz // BLOCK_ENTRIES, int(nnz > 0))


def describe_blocks(
    indptr: NDArray[Any], indices: NDArray[Any], blocks: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return BLOCK_FEATURES, shape (b, features), of blocks by their numbers, all below `whole_blocks`."""
    features = np.zeros((len(blocks), len(BLOCK_FEATURES)))
    _describe(indptr, indices, blocks, features)
    return features


@njit(nogil=True, cache=True)
def _describe(indptr, indices, blocks, features):
    lines, pages = np.full(_PLACES, -1, dtype=np.int64), np.full(_PLACES, -1, dtype=np.int64)
    nnz = np.int64(indptr[-1])
    for place in range(len(blocks)):
        first = blocks[place] * BLOCK_ENTRIES
        last = min(first + BLOCK_ENTRIES, nnz)
        counts = features[place]
        # Rows that end within the block, and those of another length than the row before.
        row = np.searchsorted(indptr, first, side="right")  # the first end behind the first entry
        while row < len(indptr) and indptr[row] <= last:
            counts[0] += 1
            if row >= 2:
                counts[1] += indptr[row] - indptr[row - 1] != indptr[row - 1] - indptr[row - 2]
            row += 1
        lines[:] = -1
        pages[:] = -1
        start = max(first - _REMEMBERED, 0)
        before, newest = np.int64(indices[start]), np.int64(-2)
        for entry in range(start, last):
            column = np.int64(indices[entry])
            line, page = column >> _LINE_SHIFT, column >> _PAGE_SHIFT
            at_line, at_page = line % _PLACES, page % _PLACES
            if entry >= first:
                step = abs(column - before)
                counts[2 + _step_class(step)] += 1
                counts[8] += line != before >> _LINE_SHIFT
                if lines[at_line] != line:
                    counts[9] += 1
                    counts[10] += line == newest + 1
                counts[11] += pages[at_page] != page
            if lines[at_line] != line:
                newest = line
            lines[at_line], pages[at_page], before = line, page, column
        counts /= last - first


@inner
def _step_class(step):
    if step <= 1:
        return 0
    if step <= 8:
        return 1
    if step <= 64:
        return 2
    if step <= 512:
        return 3
    return 4 if step <= 32768 else 5
