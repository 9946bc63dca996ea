"""One parallel sweep over the row pointers that counts what the row lengths are: no entry is read.

The rows are cut into contiguous pieces, one a thread. The counts of the pieces add up, and what reaches
across pieces (what followed four row lengths the last time) is joined afterwards. So they do not depend on
the pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparsecast.features.levels import HISTORIES, LONGEST_REMEMBERED
from sparsecast.system.integers import GOLDEN, unsigned
from sparsecast.system.jit import njit
from sparsecast.system.parallel import equal_parts, on_threads

#: Rows of at least this many entries are listed one by one, shorter ones are counted by length.
_LONG_ROW = 1024

#: Rows that are compared at once with the row before: most rows of a mesh are as long as that.
_GROUP = 16

_ZERO, _ONE = np.uint64(0), np.uint64(1)
#: Times a length + 1: the history of four rows of that length.
_ALIKE = np.uint64(0x0001000100010001)
# Places of a piece's totals.
_CHANGES, _MISPREDICTED, _LONG_ROWS = range(3)

Counts = NDArray[np.int64]


class RowSweep(NamedTuple):
    """What the row lengths are.

    Attributes
    ----------
    lengths, counts : int64 arrays
        Row lengths that occur, ascending, each once, and the rows of each.
    changes, mispredicted : int
        As in RowLengths.
    """

    lengths: Counts
    counts: Counts
    changes: int
    mispredicted: int


class _Tallies(NamedTuple):
    """What one piece counts.

    `follower` and `first_follower` hold 1 + the row length that came after a history the last and the first
    time; a 0 means that there was none in this piece.
    """

    totals: NDArray[np.uint64]
    short_rows: NDArray[np.uint64]
    long_rows: NDArray[np.uint64]
    follower: NDArray[np.uint16]
    first_follower: NDArray[np.uint16]


def sweep_rows(indptr: NDArray[np.integer[Any]], pieces: int) -> RowSweep:
    """Return what the row lengths of a CSR matrix are, found in so many pieces."""
    bounds = equal_parts(len(indptr) - 1, pieces)
    followers = np.zeros((2, pieces, HISTORIES), dtype=np.uint16)
    tallies = [
        _Tallies(
            totals=np.zeros(3, dtype=np.uint64),
            short_rows=np.zeros(_LONG_ROW, dtype=np.uint64),
            long_rows=np.zeros(int(indptr[bounds[p + 1]] - indptr[bounds[p]]) // _LONG_ROW, dtype=np.uint64),
            follower=followers[0, p],
            first_follower=followers[1, p],
        )
        for p in range(pieces)
    ]
    pointers = unsigned(indptr)
    on_threads(
        lambda piece, _: _count_rows(pointers, bounds[piece], bounds[piece + 1], tallies[piece]),
        np.arange(pieces + 1),
    )
    return _joined(tallies, int(_joined_mispredicted(followers[0], followers[1])))


def _joined(tallies: Sequence[_Tallies], mispredicted: int) -> RowSweep:
    totals = np.array([each.totals for each in tallies]).astype(np.int64).sum(axis=0)
    short = np.array([each.short_rows for each in tallies]).sum(axis=0).astype(np.int64)
    listed = [each.long_rows[: int(each.totals[_LONG_ROWS])] for each in tallies]
    long, long_counts = np.unique(np.concatenate(listed).astype(np.int64), return_counts=True)
    present = np.flatnonzero(short)
    return RowSweep(
        lengths=np.concatenate((present, long)),
        counts=np.concatenate((short[present], long_counts)),
        changes=int(totals[_CHANGES]),
        mispredicted=int(totals[_MISPREDICTED]) + mispredicted,
    )


@njit(cache=True, nogil=True)
def _count_rows(indptr, first_row, last_row, tallies):  # type: ignore[no-untyped-def]
    """Count the rows from first_row up to last_row: a group at once where its lengths are all foretold."""
    row, last_row, group = np.uint64(first_row), np.uint64(last_row), np.uint64(_GROUP)
    follower, short_rows, totals = tallies.follower, tallies.short_rows, tallies.totals
    history, before, changes, mispredicted = _ZERO, _ZERO, _ZERO, _ZERO
    for each in range(row - min(row, np.uint64(4)), row):
        before = np.uint64(indptr[each + _ONE]) - np.uint64(indptr[each])
        history = history << np.uint64(16) | min(before, np.uint64(LONGEST_REMEMBERED)) + _ONE
    if row == _ZERO and row < last_row:
        before = np.uint64(indptr[1]) - np.uint64(indptr[0])
    while row < last_row:
        end = min(row + group, last_row)
        # As long as the four rows before, which is what follows such a history, if it followed the last time.
        if (
            end - row == group
            and before < np.uint64(_LONG_ROW)
            and history == (before + _ONE) * _ALIKE
            and follower[(history * GOLDEN) >> np.uint64(48)] == before + _ONE
        ):
            differing = _ZERO
            for each in range(row, end):
                differing |= np.uint64(indptr[each + _ONE]) - np.uint64(indptr[each]) ^ before
            if differing == _ZERO:
                short_rows[before] += group
                row = end
                continue
        for each in range(row, end):
            length = np.uint64(indptr[each + _ONE]) - np.uint64(indptr[each])
            changes += np.uint64(length != before)
            before = length
            remembered = min(length, np.uint64(LONGEST_REMEMBERED)) + _ONE
            place = (history * GOLDEN) >> np.uint64(48)
            known = np.uint64(follower[place])
            mispredicted += np.uint64(known != remembered) & np.uint64(known != _ZERO)
            if known == _ZERO:
                tallies.first_follower[place] = remembered
            follower[place] = remembered
            history = history << np.uint64(16) | remembered
            if length < np.uint64(_LONG_ROW):
                short_rows[length] += _ONE
            else:
                tallies.long_rows[totals[_LONG_ROWS]] = length
                totals[_LONG_ROWS] += _ONE
        row = end
    totals[_CHANGES] += changes
    totals[_MISPREDICTED] += mispredicted


@njit(cache=True, nogil=True)
def _joined_mispredicted(last, first):  # type: ignore[no-untyped-def]
    """Count the mispredicted rows among those whose history is the first of its kind in their piece."""
    mispredicted = 0
    for place in range(last.shape[1]):
        before = np.uint16(0)
        for piece in range(last.shape[0]):
            if first[piece, place] != 0:
                mispredicted += first[piece, place] != before
                before = last[piece, place]
    return mispredicted
