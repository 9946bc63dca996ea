"""Statistics of row blocks, as models and formats read them: arrays with one element per block.

A whole matrix is one block. The dynamic programme over strips needs thousands of blocks at once; they are
differences of prefix sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.features.row_lengths import ROW_LENGTH_LEVELS, find_mispredicted_rows
from sparsecast.features.structure import Structure
from sparsecast.system.jit import njit

#: Above this share of mispredicted rows, a row loop without a branch at its end is faster. The longer the
#: rows, the less their ends count against the extra work. A line through the shares where both are equally
#: fast, on synthetic rows (benchmarks/run.py csr-loops): 0.2 at 3 entries a row, 0.35 at 8, 0.55 from 20 on.
MISPREDICTED_SHARE, MISPREDICTED_SHARE_AN_ENTRY, GREATEST_MISPREDICTED_SHARE = 0.15, 0.02, 0.55

Integers = NDArray[np.int64]

_LEVELS: Integers = np.array(ROW_LENGTH_LEVELS, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class RowBlocks:
    """Statistics of `b` row blocks for a model."""

    #: As in a Structure, for each block: shape (b,).
    rows: Integers
    nnz: Integers
    row_length_mode: Integers
    row_length_max: Integers
    mispredicted_rows: Integers
    #: The same at the first `levels` of ROW_LENGTH_LEVELS: shape (b, levels).
    rows_at_least: Integers
    entries_up_to: Integers
    matrix: Structure  # of the whole matrix, for what its blocks share, such as the columns

    @property
    def is_mispredicted(self) -> NDArray[np.bool_]:
        """Whether the mispredicted row ends of a block cost most of its time."""
        share = MISPREDICTED_SHARE * self.rows + MISPREDICTED_SHARE_AN_ENTRY * self.nnz
        greatest = GREATEST_MISPREDICTED_SHARE * self.rows
        return np.asarray(self.mispredicted_rows > np.minimum(share, greatest))

    @property
    def levels(self) -> Integers:
        """The row lengths of the second axis of `rows_at_least`."""
        return _LEVELS[: self.rows_at_least.shape[1]]

    def entries_beyond(self, length: int) -> Integers:
        """Return the entries of each block after the first `length` ones of their rows, at most 64."""
        level = min(length, self.entries_up_to.shape[1] - 1)
        return np.asarray(self.nnz - self.entries_up_to[:, level])

    @classmethod
    def of(cls, structure: Structure) -> RowBlocks:
        def one(value: int) -> Integers:
            return np.array([value], dtype=np.int64)

        return cls(
            rows=one(structure.rows),
            nnz=one(structure.nnz),
            row_length_mode=one(structure.row_lengths.mode),
            row_length_max=one(structure.row_lengths.max),
            mispredicted_rows=one(structure.row_lengths.mispredicted or 0),
            rows_at_least=np.array([structure.row_lengths.rows_at_least], dtype=np.int64),
            entries_up_to=np.array([structure.row_lengths.entries_up_to], dtype=np.int64),
            matrix=structure,
        )


@dataclass(frozen=True, slots=True)
class StripStatistics:
    """Everything a RowBlocks needs of any run of strips, in constant time a run.

    Sums over strips are differences of prefix sums; the longest row comes from a sparse table (for each
    power of two, the maximum over that many strips from each strip on); the mode is the fullest level
    of a difference of prefix histograms, exact below 64 and to an eighth of an octave above, and exact for
    the whole matrix.
    """

    bounds: Integers  # first row of each strip, and the number of rows
    nnz: Integers  # prefix sums over strips, of shape (strips + 1,)
    mispredicted: Integers
    rows_at_least: Integers  # the same, of shape (strips + 1, levels), at the levels of ROW_LENGTH_LEVELS
    entries_up_to: Integers
    longest: Integers  # the sparse table of the longest rows, of shape (powers, strips)
    matrix: Structure

    @classmethod
    def of(cls, indptr: NDArray[Any], matrix: Structure, strip_rows: int) -> StripStatistics:
        """Count the strips of `strip_rows` rows each (the last may be shorter) of a CSR matrix."""
        rows = len(indptr) - 1
        bounds = np.append(np.arange(0, max(rows, 1), strip_rows), rows).astype(np.int64)
        lengths = np.diff(indptr)
        highest = int(lengths.max(initial=0))
        levels = _LEVELS[: int(np.searchsorted(_LEVELS, highest)) + 1]
        counts, entries = np.zeros((2, len(bounds) - 1, len(levels)), dtype=np.int64)
        longest = np.zeros(len(bounds) - 1, dtype=np.int64)
        _count_strips(lengths, bounds, levels, counts, entries, longest)
        at_least: Integers = counts[:, ::-1].cumsum(axis=1)[:, ::-1]
        # Rows below a level give all their entries to the sum of min(length, level), the others the level.
        entries_below = np.cumsum(entries, axis=1) - entries
        up_to: Integers = entries_below + at_least * levels
        powers = [longest]
        while 2 ** len(powers) <= len(longest):
            below, width = powers[-1], 2 ** (len(powers) - 1)
            powers.append(below.copy())
            np.maximum(below[:-width], below[width:], out=powers[-1][:-width])
        return cls(
            bounds,
            indptr[bounds].astype(np.int64),
            _prefix(find_mispredicted_rows(lengths))[bounds],
            _prefix(at_least),
            _prefix(up_to),
            np.array(powers),
            matrix,
        )

    @property
    def strips(self) -> int:
        return len(self.bounds) - 1

    def blocks(self, first: Integers, last: Integers) -> RowBlocks:
        """Return the statistics of the blocks of strips first[i] to last[i] - 1; none may be empty."""
        at_least = self.rows_at_least[last] - self.rows_at_least[first]
        exactly = at_least.copy()
        exactly[:, :-1] -= at_least[:, 1:]
        levels = _LEVELS[: at_least.shape[1]]
        power = np.frexp(last - first)[1] - 1  # floor of the binary logarithm
        return RowBlocks(
            rows=self.bounds[last] - self.bounds[first],
            nnz=self.nnz[last] - self.nnz[first],
            row_length_mode=np.where(
                last - first == self.strips, self.matrix.row_lengths.mode, levels[exactly.argmax(axis=1)]
            ),
            row_length_max=np.maximum(self.longest[power, first], self.longest[power, last - (1 << power)]),
            mispredicted_rows=self.mispredicted[last] - self.mispredicted[first],
            rows_at_least=at_least,
            entries_up_to=self.entries_up_to[last] - self.entries_up_to[first],
            matrix=self.matrix,
        )


def _prefix(counts: NDArray[Any]) -> Integers:
    sums = np.zeros((len(counts) + 1, *counts.shape[1:]), dtype=np.int64)
    np.cumsum(counts, axis=0, out=sums[1:])
    return sums


@njit(nogil=True, cache=True)
def _count_strips(lengths, bounds, levels, counts, entries, longest):
    for strip in range(len(bounds) - 1):
        for i in range(bounds[strip], bounds[strip + 1]):
            length = np.int64(lengths[i])
            level = length if length < 64 else np.searchsorted(levels, length, side="right") - 1
            counts[strip, level] += 1
            entries[strip, level] += length
            longest[strip] = max(longest[strip], length)
