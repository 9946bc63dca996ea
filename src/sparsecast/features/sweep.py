"""A sweep over the entries of a matrix that counts where they are: all of them in parallel, or a sample.

The rows are cut into contiguous pieces, one per thread. The tallies of the pieces are integers and are added.
Counts that involve two pieces (the last line of x of a piece, the last read of each line) are joined
afterwards. So the result depends neither on the pieces nor on the threads.

A sample consists of evenly spaced ranges of entries of equal length. They are swept one after the other, and
each has its own history of reads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, csr_matrix

from sparsecast.system.integers import GOLDEN, unsigned
from sparsecast.system.jit import inner, njit
from sparsecast.system.parallel import balanced_parts_by, on_threads

#: Bands of a tenth of the dimension each (Gahvari et al. 2007, section III).
BANDS = 10

#: Entries of x in a cache line: 64 bytes of float64. Features are counted before the type is known, so other
#: types are left aside.
X_LINE_COLUMNS = 8

#: Elements of the histogram of reuse of x: element 31 also holds longer reuse, the last one first reads.
X_REUSE_ELEMENTS = 33

#: Limit of the work arrays: a share of the CSR arrays, or bytes for a small matrix.
_WORK_SHARE, _SMALL_WORK_BYTES, _SMALL_NNZ = 0.1, 4_000_000, 1_000_000
#: Bytes of work arrays that do not grow with the matrix: the counts of a piece; the row lengths and the block
#: fill.
_PIECE_BYTES, _OTHER_BYTES = 300_000, 130_000
#: Greatest number of pieces that pays.
_MAX_PIECES = 16

#: Entries and rows of a chunk, which several loops read; entries written at once.
CHUNK, SPREAD = 1024, 8
#: Ranges of a sample, and its entries: this number plus this share of all.
SAMPLE_RANGES, _SAMPLE_ENTRIES, _SAMPLE_SHARE = 8, 2**18, 1 / 64
#: Entries of `sampled_entries`: one of 2,048, at least and at most.
_LEAST_SCATTERED, _MOST_SCATTERED = 256, 1024
#: Least entries of a matrix that is sampled: in a smaller one, a few long rows exceed a range, and reuse
#: exceeds it.
LEAST_SAMPLED_NNZ = 1_000_000

#: Reuse is counted in one of up to 2**_MAX_REUSE_SHIFT runs of 2**_REUSE_RUN_BITS entries.
_REUSE_RUN_BITS, _MAX_REUSE_SHIFT, _REUSE_ENTRIES = np.uint64(9), 4, 2**17
#: The same for a sample.
_SAMPLE_REUSE_SHIFT = 2

_ZERO, _ONE = np.uint64(0), np.uint64(1)
_NO_LINE = np.uint64(2**64 - 1)
_GOLDEN_RATIO = (math.sqrt(5.0) - 1.0) / 2.0
_LINE_BITS = np.uint64(X_LINE_COLUMNS.bit_length() - 1)
# Places of a piece's totals.
_TIME, _LINE, _SINCE = range(3)

Indices = NDArray[np.integer[Any]]
Counts = NDArray[np.int64]
#: First and last + 1 of consecutive entries.
Range = tuple[int, int]
#: Row pointers, the first rows of pieces and their end, and the row of the matrix that is row 0 of these.
_Rows = tuple[Indices, list[int], int]


class _View(NamedTuple):
    """Parameters of the matrix for a sweep."""

    rows: np.uint64
    row_step: np.uint64  # distance of entry (i, j) from the rectangle's diagonal: |i row_step - j col_step|
    col_step: np.uint64
    bands_per_distance: float
    reuse_shift: np.uint64
    plane_shift: np.uint64  # diagonal k is bit k >> plane_shift of byte k % 2**plane_shift


class _Tallies(NamedTuple):
    """Counts of one piece.

    `last` and `first` hold times, in line changes of x from 1 on, of the last and of the first counted read
    of each line in this piece, 0 for none. `unseen` counts the first reads of lines, by the changes since the
    beginning. `steps` and `away` are scratch: the rows after the first of a chunk, and the bands, of its
    entries.
    """

    totals: NDArray[np.uint64]
    bands: NDArray[np.uint64]
    reuse: NDArray[np.uint64]
    unseen: NDArray[np.uint64]
    last: NDArray[np.unsignedinteger[Any]]
    first: NDArray[np.unsignedinteger[Any]]
    diagonals: NDArray[np.uint8]
    steps: NDArray[np.uint32]
    away: NDArray[np.uint8]


class Sweep(NamedTuple):
    """The joined tallies of all pieces: of the entries read, as in Bands and Locality."""

    entries: int  # number of entries read
    bands: Counts  # shape (BANDS,)
    half_bandwidth: int
    diagonals: int
    diagonals_of_half: int  # those of the first half of the ranges of a sample; 0 for a whole matrix
    line_changes: int
    #: Shape (X_REUSE_ELEMENTS,): reads by the octave of the changes since the last read of the same line; the
    #: last element counts first reads.
    reuse: Counts
    #: Shape (X_REUSE_ELEMENTS,): first reads in a sample, by the octave of the changes since the beginning of
    #: their range; else 0.
    unseen: Counts


def sampled_ranges(nnz: int) -> list[Range]:
    """Return the ranges of entries of a sample, every other one first.

    They are evenly spaced but for a step of the golden ratio: equal distances could match the pattern of a
    mesh.
    """
    length = int(_SAMPLE_ENTRIES + _SAMPLE_SHARE * nnz) // SAMPLE_RANGES
    bounds = list(pairwise(number * nnz // SAMPLE_RANGES for number in range(SAMPLE_RANGES + 1)))
    starts = [
        first + int(number * _GOLDEN_RATIO % 1.0 * (last - first - length))
        for number, (first, last) in enumerate(bounds)
    ]
    ranges = [(start, start + length) for start in starts]
    return ranges[::2] + ranges[1::2]


def sampled_entries(nnz: int) -> Counts:
    """Return some hundred entries of all parts of a matrix."""
    return spread_entries(min(max(nnz >> 11, _LEAST_SCATTERED), _MOST_SCATTERED, nnz), nnz)


def spread_entries(count: int, nnz: int) -> Counts:
    """Return entries of all parts of a matrix: one of each, at a step of the golden ratio as above."""
    number = np.arange(count)
    return ((number + number * _GOLDEN_RATIO % 1.0) * (nnz / max(count, 1))).astype(np.int64)


def pieces_of(A: csr_array | csr_matrix, nnz: int, threads: int) -> int:
    """Return the number of pieces for the sweep of `A`, which has `nnz` entries: at most one per thread.

    Above a million entries the work arrays stay below a tenth of the bytes of the CSR arrays, with fewer
    pieces if columns have few entries.
    """
    rows, cols = A.shape
    budget = _WORK_SHARE * (A.indptr.nbytes + nnz * (A.indices.itemsize + A.data.itemsize))
    if nnz <= _SMALL_NNZ:
        budget = max(budget, _SMALL_WORK_BYTES)
    a_history = _time_type(nnz).itemsize * -(-cols // X_LINE_COLUMNS)
    a_piece = _map_bytes(rows + cols - 1) + 2 * a_history + _PIECE_BYTES
    return max(1, min(threads, _MAX_PIECES, int((budget - _OTHER_BYTES) // a_piece)))


def _map_bytes(diagonals: int) -> int:
    """Return the bytes of a map with a bit per diagonal, rounded up to a power of two of at least 8."""
    return int(2 ** max(-(-diagonals // 8) - 1, 7).bit_length())


def _time_type(nnz: int) -> np.dtype[np.unsignedinteger[Any]]:
    return np.dtype(np.uint32 if nnz < 2**32 else np.uint64)


def _sampled(indptr: Indices, entries: Range) -> _Rows:
    """Return a range of entries as rows, of which the first and the last may be cut."""
    start, stop = np.array(entries, dtype=indptr.dtype)
    first = int(np.searchsorted(indptr, start, side="right")) - 1
    last = int(np.searchsorted(indptr, stop))
    return np.clip(indptr[first : last + 1], start, stop), [0, last - first], first


def sweep(
    indptr: Indices, indices: Indices, shape: tuple[int, int], pieces: int, ranges: Sequence[Range] = ()
) -> Sweep:
    """Return the counts of all entries, swept in `pieces` pieces, or of those in `ranges`, in one piece."""
    # A piece that is alone needs no first reads: nothing was read before it.
    lines = -(-shape[1] // X_LINE_COLUMNS)
    history = np.zeros((min(2, pieces), pieces, lines), dtype=_time_type(indices.size))
    maps = np.zeros((pieces, _map_bytes(max(sum(shape) - 1, 0))), dtype=np.uint8)
    tallies = [_tallies(history[:, piece], maps[piece]) for piece in range(pieces)]
    steps = [_sampled(indptr, entries) for entries in ranges]
    if not ranges:  # pieces of about equal work: a row costs about as much as an entry
        bounds = balanced_parts_by(lambda row: row + int(indptr[row]), len(indptr) - 1, pieces)
        steps = [(indptr, bounds.tolist(), 0)]
    view = _view(shape, indices.size, maps.shape[1], bool(ranges))
    of_half = 0
    for number, rows in enumerate(steps, 1):
        _scan_all(rows, unsigned(indices), view, tallies)
        if 2 * number == len(steps):
            of_half = _read_map(maps[0])[0]
    for other in maps[1:]:
        maps[0] |= other
    marked, *ends = _read_map(maps[0])
    bands = np.array([tally.bands for tally in tallies]).astype(np.int64).reshape(-1, 16)
    reuse = np.array([tally.reuse for tally in tallies]).sum(axis=0)
    reuse[-1] += sum(tally.unseen.sum() for tally in tallies)
    changes = np.array([tally.totals[_TIME] for tally in tallies])
    if pieces > 1:
        _join_reuse(history[0], history[1], np.cumsum(changes) - changes, reuse)
    return Sweep(
        entries=sum(last - first for first, last in ranges) if ranges else indices.size,
        bands=bands.sum(axis=0)[:BANDS],
        half_bandwidth=max(abs(end - (shape[0] - 1)) for end in ends) if marked else 0,
        diagonals=marked,
        diagonals_of_half=of_half,
        line_changes=int(changes.sum()),
        reuse=reuse.astype(np.int64),
        unseen=tallies[0].unseen.astype(np.int64) if ranges else np.zeros(X_REUSE_ELEMENTS, dtype=np.int64),
    )


def _scan_all(rows: _Rows, indices: Indices, view: _View, tallies: Sequence[_Tallies]) -> None:
    pointers, bounds, offset = rows

    def scan(piece: int, _: int) -> None:
        of_piece = bounds[piece], bounds[piece + 1]
        _scan(unsigned(pointers), indices, of_piece, offset, view, tallies[piece])

    on_threads(scan, np.arange(len(bounds)))


def _tallies(history: NDArray[Any], diagonals: NDArray[np.uint8]) -> _Tallies:
    return _Tallies(
        totals=np.zeros(3, dtype=np.uint64),
        bands=np.zeros(8 * 16, dtype=np.uint64),
        reuse=np.zeros(X_REUSE_ELEMENTS, dtype=np.uint64),
        unseen=np.zeros(X_REUSE_ELEMENTS, dtype=np.uint64),
        last=history[0],
        first=history[1] if len(history) > 1 else history[0, :0],
        diagonals=diagonals,
        steps=np.zeros(CHUNK + SPREAD, dtype=np.uint32),
        away=np.zeros(CHUNK, dtype=np.uint8),
    )


def _view(shape: tuple[int, int], nnz: int, map_bytes: int, is_sample: bool) -> _View:
    rows, cols = shape
    common = math.gcd(rows, cols) or 1
    shift = max(0, min(_MAX_REUSE_SHIFT, (nnz // _REUSE_ENTRIES).bit_length() - 1))
    shift = min(shift, _SAMPLE_REUSE_SHIFT) if is_sample else shift
    return _View(
        rows=np.uint64(rows),
        row_step=np.uint64(cols // common),
        col_step=np.uint64(rows // common),
        bands_per_distance=BANDS / max(rows * cols // common, 1),
        reuse_shift=np.uint64(shift),
        plane_shift=np.uint64(map_bytes.bit_length() - 1),
    )


@njit(cache=True, nogil=True)
def _scan(indptr, indices, rows, offset, view, tallies):
    """Count the entries of a span, one chunk after the other.

    A chunk fits the first-level cache, so each count has its own loop: one loop for all of them runs out of
    registers. The loops ignore the rows, whose ends would be mispredicted in each of them.
    """
    row, last_row = rows
    start = np.uint64(indptr[row])
    tallies.totals[_LINE] = _NO_LINE if start == _ZERO else np.uint64(indices[start - _ONE]) >> _LINE_BITS
    tallies.totals[_SINCE] = tallies.totals[_TIME]
    while row < last_row:
        end = chunk_end(indptr, row, last_row)
        start, stop = np.uint64(indptr[row]), np.uint64(indptr[end])
        if stop - start <= np.uint64(CHUNK):
            spread(indptr, row, end, tallies.steps)
        else:
            tallies.steps[:] = 0
        while start < stop:
            part = min(stop, start + np.uint64(CHUNK))
            of_matrix = np.uint64(row + offset), np.uint64(end - 1 + offset)
            columns = extremes(indices, start, part)
            _mark_diagonals(indices, (start, part), of_matrix[0], view, tallies)
            _count_bands(indices, (start, part), of_matrix, columns, view, tallies)
            _count_lines(indices, (start, part), view, tallies)
            start = part
        row = end


@inner
def chunk_end(indptr, row, last_row):
    """Return the end of the chunk that begins with a row: as many rows as fit it, at least one."""
    start, end = np.uint64(indptr[row]), row + 1
    while end < last_row and end - row < CHUNK and np.uint64(indptr[end + 1]) - start <= np.uint64(CHUNK):
        end += 1
    return end


@njit(cache=True, nogil=True)
def spread(indptr, first_row, last_row, steps):
    """Write for each entry of a chunk its row minus `first_row`, and up to SPREAD more entries."""
    first = np.uint64(indptr[first_row])
    place = _ZERO
    for row in range(first_row, last_row):
        step = np.uint32(row - first_row)
        # Always eight at once, whatever the row end: the next row overwrites the rest.
        for entry in range(np.uint64(SPREAD)):
            steps[place + entry] = step
        stop = np.uint64(indptr[row + 1]) - first
        for entry in range(place + np.uint64(SPREAD), stop):
            steps[entry] = step
        place = stop


@inner
def extremes(indices, start, stop):
    """Return the least and the greatest of the indices from `start` to `stop` - 1; there is one."""
    least = greatest = indices[start]
    for entry in range(start, stop):
        least, greatest = min(least, indices[entry]), max(greatest, indices[entry])
    return np.uint64(least), np.uint64(greatest)


@inner
def _mark_diagonals(indices, entries, first_row, view, tallies):
    (start, stop), diagonals = entries, tallies.diagonals
    low_bits, shift = np.uint64(diagonals.size) - _ONE, view.rows - _ONE - first_row
    # Set without a test, which would be mispredicted in scattered matrices. Neighbours are in different
    # bytes, so that none waits for the other.
    for entry in range(start, stop):
        place = np.uint64(indices[entry]) + shift - np.uint64(tallies.steps[entry - start])
        diagonals[place & low_bits] |= np.uint8(_ONE << (place >> view.plane_shift))


@inner
def _count_bands(indices, entries, rows, columns, view, tallies):
    (start, stop), (first, last), (least, greatest) = entries, rows, columns
    steps, away, bands = tallies.steps, tallies.away, tallies.bands
    # The first row with the last column, or the last row with the first column, is farthest away.
    if max(_bands_away(first, greatest, view), _bands_away(last, least, view)) < 1.0:
        bands[0] += stop - start
        return
    for entry in range(start, stop):
        row = first + np.uint64(steps[entry - start])
        away[entry - start] = min(np.int32(_bands_away(row, np.uint64(indices[entry]), view)), BANDS - 1)
    # A separate loop, so that the one above is vectorised. Eight copies of the counts, since an addition to
    # the same count waits for the previous one.
    for entry in range(stop - start):
        bands[((entry & np.uint64(7)) << np.uint64(4)) + np.uint64(away[entry])] += _ONE


@njit(cache=True, nogil=True)
def _read_map(diagonals):
    """Return the number of marked diagonals, and the lowest and the highest of them."""
    marked, lowest, highest = 0, 8 * diagonals.size, 0
    for word, eight in enumerate(diagonals.view(np.uint64)):
        if eight == _ZERO:
            continue
        for byte in range(8 * word, 8 * word + 8):
            bits = diagonals[byte]
            for plane in range(8):
                if bits >> plane & 1:
                    place = plane * diagonals.size + byte
                    marked += 1
                    lowest, highest = min(lowest, place), max(highest, place)
    return marked, lowest, highest


@inner
def _bands_away(row, column, view):
    # Distances are integers and band edges multiples of a tenth, so adding less than a tenth puts the
    # product with the rounded reciprocal on the right side of the edge.
    distance = np.int64(row * view.row_step - column * view.col_step)
    return (abs(np.float64(distance)) + 0.05) * view.bands_per_distance


@inner
def _count_lines(indices, entries, view, tallies):
    (start, stop), last, totals = entries, tallies.last, tallies.totals
    before, time = totals[_LINE], totals[_TIME]
    while start < stop:
        run = start >> _REUSE_RUN_BITS
        end = min(stop, (run + _ONE) << _REUSE_RUN_BITS)
        group = run >> view.reuse_shift
        chosen = ((group * GOLDEN) >> np.uint64(32)) & ((_ONE << view.reuse_shift) - _ONE)
        if run - (group << view.reuse_shift) == chosen:
            _count_reuse(indices, start, end, tallies)
        # Stored for every entry: one that reads the same line again stores the same time again.
        for entry in range(start, end):
            line = np.uint64(indices[entry]) >> _LINE_BITS
            time += np.uint64(line != before)
            before = line
            last[line] = time
        totals[_LINE], totals[_TIME] = before, time
        start = end


@inner
def _count_reuse(indices, start, stop, tallies):
    """Count the changes since the last read of each line, for the line changes from start up to stop.

    The loop over the same entries that follows leaves `last` as this one does.
    """
    last = tallies.last
    before, time, since = tallies.totals[_LINE], tallies.totals[_TIME], tallies.totals[_SINCE]
    for entry in range(start, stop):
        line = np.uint64(indices[entry]) >> _LINE_BITS
        if line == before:
            continue
        before = line
        time += _ONE
        if np.uint64(last[line]) > since:
            tallies.reuse[_octave(time - np.uint64(last[line]))] += _ONE
        elif tallies.first.size == 0:
            tallies.unseen[_octave(time - since)] += _ONE
        else:
            tallies.first[line] = time
        last[line] = time


@inner
def _octave(value):
    octave = _ZERO
    for step in (np.uint64(16), np.uint64(8), np.uint64(4), np.uint64(2), np.uint64(1)):
        if value >> step != _ZERO:
            octave += step
            value >>= step
    return octave


@njit(cache=True, nogil=True)
def _join_reuse(last, first, starts, reuse):
    """Count the reads that are the first of their piece, from the last reads of the pieces before it."""
    for slot in range(last.shape[1]):
        before = _ZERO
        for piece in range(last.shape[0]):
            if first[piece, slot] != 0:
                time = starts[piece] + np.uint64(first[piece, slot])
                element = np.uint64(X_REUSE_ELEMENTS - 1) if before == _ZERO else _octave(time - before)
                reuse[element] += _ONE
            if last[piece, slot] != 0:
                before = starts[piece] + np.uint64(last[piece, slot])
