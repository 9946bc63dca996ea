"""One parallel sweep over the rows and entries of a matrix that counts what its Structure says.

The rows are cut into contiguous pieces, one a thread. Every tally of a piece is an integer that adds up
with those of the others, and what reaches across pieces (the line of x read last, the last read of each
line, what followed four row lengths the last time) is joined afterwards. So the counts depend neither on
the pieces nor on the threads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, csr_matrix

from sparsecast.features.levels import (
    BANDS,
    HISTORIES,
    LONGEST_REMEMBERED,
    X_LINE_COLUMNS,
    X_REUSE_ELEMENTS,
)
from sparsecast.integers import GOLDEN, unsigned
from sparsecast.parallel import balanced_parts_by, on_threads

#: Work arrays may take this share of the CSR arrays, or this many bytes where the matrix is small.
_WORK_SHARE, _SMALL_WORK_BYTES, _SMALL_NNZ = 0.1, 4_000_000, 1_000_000
#: Bytes of work arrays that do not grow with the matrix: a piece's histories and counts; and those of the
#: block fill, which is found at the same time.
_PIECE_BYTES, _OTHER_BYTES = 300_000, 130_000
#: More pieces than this stop paying.
_MAX_PIECES = 16

#: Entries, and rows, that are looked at from several sides before the next ones; entries written at once.
CHUNK, SPREAD = 4096, 8
#: Rows of at least this many entries are listed one by one, shorter ones are counted by length.
_LONG_ROW = 1024
#: Reuse is looked at in one of up to 2**_MAX_REUSE_SHIFT runs of 2**_REUSE_RUN_BITS entries.
_REUSE_RUN_BITS, _MAX_REUSE_SHIFT, _REUSE_ENTRIES = np.uint64(9), 4, 2**17

_ZERO, _ONE = np.uint64(0), np.uint64(1)
_NO_LINE = np.uint64(2**64 - 1)
_LINE_BITS = np.uint64(X_LINE_COLUMNS.bit_length() - 1)
# Places of a piece's totals.
_TIME, _LINE, _LENGTH_CHANGES, _MISPREDICTED, _LONG_ROWS = range(5)

Indices = NDArray[np.integer[Any]]
Counts = NDArray[np.int64]


class _View(NamedTuple):
    """What a sweep over the entries needs to know of the matrix, and the window of its maps."""

    rows: np.uint64
    row_step: np.uint64  # distance of entry (i, j) from the rectangle's diagonal: |i row_step - j col_step|
    col_step: np.uint64
    bands_per_distance: float
    reuse_shift: np.uint64
    first_line: np.uint64
    first_diagonal: np.uint64
    plane_shift: np.uint64  # diagonal first_diagonal + k is bit k >> plane_shift of byte k % 2**plane_shift


class _Tallies(NamedTuple):
    """What one piece counts; `last`, `first` and `diagonals` cover one window of lines and diagonals.

    `last` and `first` hold times, in line changes of x from 1 on, of the last and of the first looked-at
    read of each line; `follower` and `first_follower` hold 1 + the row length that came after a history.
    A 0 means that there was none in this piece. `steps` and `away` are scratch:
    the rows after the first of a chunk, and the bands, of its entries.
    """

    totals: NDArray[np.uint64]
    short_rows: NDArray[np.uint64]
    long_rows: NDArray[np.uint64]
    bands: NDArray[np.uint64]
    reuse: NDArray[np.uint64]
    last: NDArray[np.unsignedinteger[Any]]
    first: NDArray[np.unsignedinteger[Any]]
    diagonals: NDArray[np.uint8]
    follower: NDArray[np.uint16]
    first_follower: NDArray[np.uint16]
    steps: NDArray[np.uint32]
    away: NDArray[np.uint8]


class Work(NamedTuple):
    """How the work is cut so that its arrays stay within their bound."""

    pieces: int
    windows: int
    lines: int
    diagonals: int


class Sweep(NamedTuple):
    """The joined tallies of all pieces and windows."""

    lengths: Counts
    length_counts: Counts
    length_changes: int
    mispredicted_rows: int
    bands: Counts
    half_bandwidth: int
    diagonals: int
    line_changes: int
    reuse: Counts


def cut(A: csr_array | csr_matrix, nnz: int, threads: int) -> Work:
    """Return how to cut the sweep of `A`, which has `nnz` entries, for at most `threads` threads.

    Above a million entries the work arrays stay below a tenth of the bytes of the CSR arrays: at the cost
    of threads where there are few entries a column, and of repeated sweeps where there is less than one.
    """
    rows, cols = A.shape
    budget = _WORK_SHARE * (A.indptr.nbytes + nnz * (A.indices.itemsize + A.data.itemsize))
    if nnz <= _SMALL_NNZ:
        budget = max(budget, _SMALL_WORK_BYTES)
    budget = max(budget - _OTHER_BYTES, 0.5 * budget)
    lines, diagonals = -(-cols // X_LINE_COLUMNS), max(rows + cols - 1, 0)
    a_map, a_history = _map_bytes(diagonals), _time_type(nnz).itemsize * lines
    pieces = int(budget // (a_map + 2 * a_history + _PIECE_BYTES))
    pieces = max(1, min(threads, _MAX_PIECES, pieces))
    windows = 1
    room = max(budget - _PIECE_BYTES, 0.5 * budget)
    while pieces == 1 and _map_bytes(-(-diagonals // windows)) + a_history / windows > room:
        windows += 1
    return Work(pieces, windows, -(-lines // windows), 8 * _map_bytes(-(-diagonals // windows)))


def _map_bytes(diagonals: int) -> int:
    """Return the bytes of a map with a bit a diagonal, of which a power of two is needed."""
    return int(2 ** max(-(-diagonals // 8) - 1, 0).bit_length())


def _time_type(nnz: int) -> np.dtype[np.unsignedinteger[Any]]:
    return np.dtype(np.uint32 if nnz < 2**32 else np.uint64)


def sweep(indptr: Indices, indices: Indices, shape: tuple[int, int], work: Work) -> Sweep:
    """Return what rows and entries show, swept in the pieces and windows of `work`."""
    nnz = indices.size
    pointers, columns = unsigned(indptr), unsigned(indices)
    # A row costs about as much as an entry.
    bounds = balanced_parts_by(lambda row: row + int(indptr[row]), len(indptr) - 1, work.pieces)
    # A piece that is alone needs no first reads: nothing was read before it.
    history = np.zeros((min(2, work.pieces), work.pieces, work.lines), dtype=_time_type(nnz))
    maps = np.zeros((work.pieces, work.diagonals // 8), dtype=np.uint8)
    followers = np.zeros((2, work.pieces, HISTORIES), dtype=np.uint16)
    entries = np.diff(indptr[bounds])
    tallies = [_tallies(int(entries[p]), history[:, p], maps[p], followers[:, p]) for p in range(work.pieces)]
    starts = np.zeros(work.pieces, dtype=np.uint64)
    reuse = np.zeros(X_REUSE_ELEMENTS, dtype=np.uint64)
    diagonals, ends = 0, [shape[0] - 1]
    for window in range(work.windows):
        view = _view(shape, nnz, window, work)

        def sweep_piece(piece: int, _: int, view: _View = view) -> None:
            for counts in tallies[piece] if view.first_diagonal else ():
                counts.fill(0)
            _scan(pointers, columns, bounds[piece], bounds[piece + 1], view, tallies[piece])

        on_threads(sweep_piece, np.arange(work.pieces + 1))
        for piece in range(1, work.pieces):
            starts[piece] = starts[piece - 1] + tallies[piece - 1].totals[_TIME]
            maps[0] |= maps[piece]
        if work.pieces > 1:
            _join_reuse(history[0], history[1], starts, reuse)
        for each in tallies:
            reuse += each.reuse
        marked, lowest, highest = _read_map(maps[0])
        diagonals += marked
        ends += [int(view.first_diagonal) + end for end in (lowest, highest) if marked]
    half_bandwidth = max(abs(each - (shape[0] - 1)) for each in ends)
    mispredicted = _joined_mispredicted(followers[0], followers[1])
    return _joined(tallies, mispredicted, (diagonals, half_bandwidth), reuse.astype(np.int64))


def _tallies(
    entries: int, history: NDArray[Any], diagonals: NDArray[np.uint8], followers: NDArray[np.uint16]
) -> _Tallies:
    return _Tallies(
        totals=np.zeros(5, dtype=np.uint64),
        short_rows=np.zeros(_LONG_ROW, dtype=np.uint64),
        long_rows=np.zeros(entries // _LONG_ROW, dtype=np.uint64),
        bands=np.zeros(8 * 16, dtype=np.uint64),
        reuse=np.zeros(X_REUSE_ELEMENTS, dtype=np.uint64),
        last=history[0],
        first=history[1] if len(history) > 1 else history[0, :0],
        diagonals=diagonals,
        follower=followers[0],
        first_follower=followers[1],
        steps=np.zeros(CHUNK + SPREAD, dtype=np.uint32),
        away=np.zeros(CHUNK, dtype=np.uint8),
    )


def _view(shape: tuple[int, int], nnz: int, window: int, work: Work) -> _View:
    rows, cols = shape
    common = math.gcd(rows, cols) or 1
    shift = max(0, min(_MAX_REUSE_SHIFT, (nnz // _REUSE_ENTRIES).bit_length() - 1))
    return _View(
        rows=np.uint64(rows),
        row_step=np.uint64(cols // common),
        col_step=np.uint64(rows // common),
        bands_per_distance=BANDS / max(rows * cols // common, 1),
        reuse_shift=np.uint64(shift),
        first_line=np.uint64(window * work.lines),
        first_diagonal=np.uint64(window * work.diagonals),
        plane_shift=np.uint64((work.diagonals // 8).bit_length() - 1),
    )


def _joined(
    tallies: Sequence[_Tallies], mispredicted: int, diagonals: tuple[int, int], reuse: Counts
) -> Sweep:
    totals = np.array([each.totals for each in tallies]).astype(np.int64)
    short = np.array([each.short_rows for each in tallies]).sum(axis=0).astype(np.int64)
    listed = [each.long_rows[: int(each.totals[_LONG_ROWS])] for each in tallies]
    long, long_counts = np.unique(np.concatenate(listed).astype(np.int64), return_counts=True)
    present = np.flatnonzero(short)
    bands = np.array([each.bands for each in tallies]).astype(np.int64).reshape(-1, 16)
    return Sweep(
        lengths=np.concatenate((present, long)),
        length_counts=np.concatenate((short[present], long_counts)),
        length_changes=int(totals[:, _LENGTH_CHANGES].sum()),
        mispredicted_rows=int(totals[:, _MISPREDICTED].sum()) + mispredicted,
        bands=bands.sum(axis=0)[:BANDS],
        half_bandwidth=diagonals[1],
        diagonals=diagonals[0],
        line_changes=int(totals[:, _TIME].sum()),
        reuse=reuse,
    )


@numba.njit(cache=True, nogil=True)
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


@numba.njit(cache=True, nogil=True)
def _scan(indptr, indices, first_row, last_row, view, tallies):  # type: ignore[no-untyped-def]
    """Count what the rows from first_row up to last_row show, one chunk after the other.

    A chunk fits the first-level cache, so each count is a loop of its own: one loop for all of them runs out
    of registers. The loops know nothing of rows, whose ends would be mispredicted in each of them.
    """
    start = np.uint64(indptr[first_row])
    tallies.totals[_LINE] = _NO_LINE if start == _ZERO else np.uint64(indices[start - _ONE]) >> _LINE_BITS
    row = first_row
    while row < last_row:
        end = chunk_end(indptr, row, last_row)
        start, stop = np.uint64(indptr[row]), np.uint64(indptr[end])
        _count_lengths(indptr, row, end, tallies)
        if stop - start <= np.uint64(CHUNK):
            spread(indptr, row, end, tallies.steps)
        else:
            tallies.steps[:] = 0
        while start < stop:
            part = min(stop, start + np.uint64(CHUNK))
            rows, columns = (np.uint64(row), np.uint64(end - 1)), _extremes(indices, start, part)
            _mark_diagonals(indices, (start, part), rows, columns, view, tallies)
            _count_bands(indices, (start, part), rows, columns, view, tallies)
            _count_lines(indices, (start, part), columns, view, tallies)
            start = part
        row = end


@numba.njit(cache=True, nogil=True)
def chunk_end(indptr, row, last_row):  # type: ignore[no-untyped-def]
    """Return where the chunk that begins with a row ends: as many rows as fit it, at least one."""
    start, end = np.uint64(indptr[row]), row + 1
    while end < last_row and end - row < CHUNK and np.uint64(indptr[end + 1]) - start <= np.uint64(CHUNK):
        end += 1
    return end


@numba.njit(cache=True, nogil=True)
def spread(indptr, first_row, last_row, steps):  # type: ignore[no-untyped-def]
    """Write for each entry of a chunk how many rows after first_row it lies, and up to SPREAD more."""
    first = np.uint64(indptr[first_row])
    place = _ZERO
    for row in range(first_row, last_row):
        step = np.uint32(row - first_row)
        # Always eight at once, without asking where the row ends: the next row overwrites what is too many.
        for each in range(np.uint64(SPREAD)):
            steps[place + each] = step
        stop = np.uint64(indptr[row + 1]) - first
        for each in range(place + np.uint64(SPREAD), stop):
            steps[each] = step
        place = stop


@numba.njit(cache=True, nogil=True)
def _count_lengths(indptr, first_row, last_row, tallies):  # type: ignore[no-untyped-def]
    totals, follower = tallies.totals, tallies.follower
    history, before = _ZERO, np.uint64(indptr[first_row + 1]) - np.uint64(indptr[first_row])
    for row in range(max(first_row - 4, 0), first_row):
        before = np.uint64(indptr[row + 1]) - np.uint64(indptr[row])
        history = history << np.uint64(16) | min(before, np.uint64(LONGEST_REMEMBERED)) + _ONE
    start = np.uint64(indptr[first_row])
    for row in range(first_row, last_row):
        stop = np.uint64(indptr[row + 1])
        length = stop - start
        start = stop
        totals[_LENGTH_CHANGES] += np.uint64(length != before)
        before = length
        remembered = min(length, np.uint64(LONGEST_REMEMBERED)) + _ONE
        place = (history * GOLDEN) >> np.uint64(48)
        known = np.uint64(follower[place])
        totals[_MISPREDICTED] += np.uint64(known != remembered) & np.uint64(known != _ZERO)
        if known == _ZERO:
            tallies.first_follower[place] = remembered
        follower[place] = remembered
        history = history << np.uint64(16) | remembered
        if length < np.uint64(_LONG_ROW):
            tallies.short_rows[length] += _ONE
        else:
            tallies.long_rows[totals[_LONG_ROWS]] = length
            totals[_LONG_ROWS] += _ONE


@numba.njit(cache=True, nogil=True)
def _extremes(indices, start, stop):  # type: ignore[no-untyped-def]
    least = greatest = indices[start]
    for entry in range(start, stop):
        least, greatest = min(least, indices[entry]), max(greatest, indices[entry])
    return np.uint64(least), np.uint64(greatest)


@numba.njit(cache=True, nogil=True)
def _mark_diagonals(indices, entries, rows, columns, view, tallies):  # type: ignore[no-untyped-def]
    (start, stop), (least, greatest), diagonals = entries, columns, tallies.diagonals
    low_bits, bits = np.uint64(diagonals.size) - _ONE, np.uint64(diagonals.size) << np.uint64(3)
    lowest, highest = view.rows - _ONE - rows[1] + least, view.rows - _ONE - rows[0] + greatest
    inside = view.first_diagonal <= lowest and highest - view.first_diagonal < bits
    shift = view.rows - _ONE - rows[0] - view.first_diagonal
    # Set whether it was set or not: a test would be mispredicted in scattered matrices. Neighbours lie in
    # different bytes: one would have to wait for the other.
    for entry in range(start, stop):
        place = np.uint64(indices[entry]) + shift - np.uint64(tallies.steps[entry - start])
        if inside or place < bits:
            diagonals[place & low_bits] |= np.uint8(_ONE << (place >> view.plane_shift))


@numba.njit(cache=True, nogil=True)
def _count_bands(indices, entries, rows, columns, view, tallies):  # type: ignore[no-untyped-def]
    (start, stop), (first, last), (least, greatest) = entries, rows, columns
    steps, away, bands = tallies.steps, tallies.away, tallies.bands
    # The first row with the last column, or the last row with the first column, is farthest away.
    if max(_bands_away(first, greatest, view), _bands_away(last, least, view)) < 1.0:
        bands[0] += stop - start
        return
    for entry in range(start, stop):
        row = first + np.uint64(steps[entry - start])
        away[entry - start] = min(np.int32(_bands_away(row, np.uint64(indices[entry]), view)), BANDS - 1)
    # In a loop of its own, so that the one above is vectorised. Eight copies of the counts, since adding to
    # the one just added to has to wait for it.
    for entry in range(stop - start):
        bands[((entry & np.uint64(7)) << np.uint64(4)) + np.uint64(away[entry])] += _ONE


@numba.njit(cache=True, nogil=True)
def _read_map(diagonals):  # type: ignore[no-untyped-def]
    """Return how many diagonals a map marks, and the lowest and the highest of them."""
    marked, lowest, highest = 0, 8 * diagonals.size, 0
    for each in range(diagonals.size):
        bits = diagonals[each]
        if bits != 0:
            for plane in range(8):
                if bits >> plane & 1:
                    place = plane * diagonals.size + each
                    marked += 1
                    lowest, highest = min(lowest, place), max(highest, place)
    return marked, lowest, highest


@numba.njit(cache=True, nogil=True)
def _bands_away(row, column, view):  # type: ignore[no-untyped-def]
    # Distances are integers and band edges multiples of a tenth, so adding less than a tenth puts the
    # product with the rounded reciprocal on the right side of the edge.
    distance = np.int64(row * view.row_step - column * view.col_step)
    return (abs(np.float64(distance)) + 0.05) * view.bands_per_distance


@numba.njit(cache=True, nogil=True)
def _count_lines(indices, entries, columns, view, tallies):  # type: ignore[no-untyped-def]
    last, totals = tallies.last, tallies.totals
    first_line, lines = view.first_line, np.uint64(tallies.last.size)
    (start, stop), least, greatest = entries, columns[0] >> _LINE_BITS, columns[1] >> _LINE_BITS
    inside = first_line <= least and greatest - first_line < lines
    before, time = totals[_LINE], totals[_TIME]
    while start < stop:
        run = start >> _REUSE_RUN_BITS
        end = min(stop, (run + _ONE) << _REUSE_RUN_BITS)
        group = run >> view.reuse_shift
        chosen = ((group * GOLDEN) >> np.uint64(32)) & ((_ONE << view.reuse_shift) - _ONE)
        if run - (group << view.reuse_shift) == chosen:
            _count_reuse(indices, start, end, view, tallies)
        # Stored for every entry: one that reads the same line again stores the same time again.
        for entry in range(start, end):
            line = np.uint64(indices[entry]) >> _LINE_BITS
            time += np.uint64(line != before)
            before = line
            if inside or line - first_line < lines:
                last[line - first_line] = time
        totals[_LINE], totals[_TIME] = before, time
        start = end


@numba.njit(cache=True, nogil=True)
def _count_reuse(indices, start, stop, view, tallies):  # type: ignore[no-untyped-def]
    """Count how long ago the lines that change from start up to stop were read last.

    The loop over the same entries that follows leaves `last` as this one does.
    """
    last = tallies.last
    before, time = tallies.totals[_LINE], tallies.totals[_TIME]
    for entry in range(start, stop):
        line = np.uint64(indices[entry]) >> _LINE_BITS
        if line == before:
            continue
        before = line
        time += _ONE
        slot = line - view.first_line
        if slot < np.uint64(last.size):
            if last[slot] != 0:
                tallies.reuse[_octave(time - np.uint64(last[slot]))] += _ONE
            elif tallies.first.size == 0:
                tallies.reuse[X_REUSE_ELEMENTS - 1] += _ONE
            else:
                tallies.first[slot] = time
            last[slot] = time


@numba.njit(cache=True, nogil=True)
def _octave(value):  # type: ignore[no-untyped-def]
    octave = _ZERO
    for step in (np.uint64(16), np.uint64(8), np.uint64(4), np.uint64(2), np.uint64(1)):
        if value >> step != _ZERO:
            octave += step
            value >>= step
    return octave


@numba.njit(cache=True, nogil=True)
def _join_reuse(last, first, starts, reuse):  # type: ignore[no-untyped-def]
    """Count the reads that are the first of their piece, from what the pieces before it read last."""
    for slot in range(last.shape[1]):
        before = _ZERO
        for piece in range(last.shape[0]):
            if first[piece, slot] != 0:
                time = starts[piece] + np.uint64(first[piece, slot])
                element = np.uint64(X_REUSE_ELEMENTS - 1) if before == _ZERO else _octave(time - before)
                reuse[element] += _ONE
            if last[piece, slot] != 0:
                before = starts[piece] + np.uint64(last[piece, slot])
