"""Synthetic twins of real matrices, made from nothing but a Structure.

The paper's twin (Gahvari et al. 2007, section III) has the matrix's dimension, density, block size and bands. Its
first band is a tenth of the dimension wide and its rows are equally long, so it loses what decides the time of
many products: how soon a cache line of x is read again, and how well the ends of rows are foreseen. Ours has the
row lengths, as many of them surprising, as many reads of new cache lines, and reuses lines after as many others.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.matrices.banded_synthesis import Whole, _apportioned, _grid, _opened, _pattern
from sparsecast.matrices.sweep import X_REUSE_ELEMENTS, length_surprises
from sparsecast.matrices.synthesis import mixed
from sparsecast.records import ROW_LENGTH_LEVELS, X_LINE_COLUMNS, Structure

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ONE = np.uint64(1)
_SEARCH_STEPS = 12
_FIRST_READS, _STAYS = X_REUSE_ELEMENTS - 1, X_REUSE_ELEMENTS
_LOOKS, _ATTEMPTS = 64, 3


def twin(structure: Structure, *, seed: int) -> csr_array:
    lengths = _ordered(row_lengths(structure), structure.row_length_surprises, seed)
    indptr = np.zeros(structure.rows + 1, dtype=np.int32)
    np.cumsum(lengths, out=indptr[1:])
    visits = _visits(structure, lengths)
    quotas = np.zeros(_FIRST_READS + 2, dtype=np.int64)
    quotas[:-1] = np.rint(np.array(structure.x_reuse_histogram) * structure.x_line_changes)
    quotas[_STAYS] = max(0, int(visits.sum()) - structure.x_line_changes)
    indices = np.empty(structure.nnz, dtype=np.int32)
    band_ends = np.cumsum(structure.band_histogram)
    view = _View(structure.cols, structure.cols / structure.rows, max(1, structure.half_bandwidth), band_ends)
    _draw(indptr, visits, quotas, view, np.uint64(seed % 2**64), indices)
    data = np.random.default_rng(seed).uniform(-1, 1, structure.nnz)
    return csr_array((data, indices, indptr), shape=(structure.rows, structure.cols))


def banded_twin(structure: Structure, block: int, *, seed: int) -> csr_array:
    rows, cols, nnz = structure.rows, structure.cols, structure.nnz
    # A matrix that is nearly full may have more entries than whole blocks within it.
    block = block if (rows // block) * (cols // block) * block**2 >= nnz else 1
    blocks = -(-nnz // block**2)
    grid = _grid(rows // block, cols // block, blocks, False)
    weights = np.ones(grid.block_rows, dtype=np.int64)
    shares = np.array(structure.band_histogram)
    index = np.dtype(np.int32)
    indptr, indices = _opened(*_pattern(grid, shares, weights, seed, index), (block, block))
    whole = np.full(rows + 1, nnz, dtype=indptr.dtype)
    np.minimum(indptr, nnz, out=whole[: len(indptr)])
    data = np.random.default_rng(seed).uniform(-1, 1, nnz)
    return csr_array((data, indices[:nnz], whole), shape=(rows, cols))


class _View(NamedTuple):
    cols: int
    slope: float  # of the diagonal
    half_bandwidth: int
    band_ends: NDArray[np.float64]  # cumulative shares


class _State(NamedTuple):
    """Lines of x as they were read, one after the other.

    `trace` holds the line of each change, `last` when a line was read last (-1: never), `row` in which row, and
    `free` leads from each line to the next one that was never read.
    """

    trace: NDArray[np.int32]
    last: NDArray[np.int64]
    row: NDArray[np.int64]
    free: NDArray[np.int64]


def _visits(structure: Structure, lengths: Whole) -> Whole:
    """Return how many lines of x each row reads."""
    lines = -(-structure.cols // X_LINE_COLUMNS)
    lack = lines * X_LINE_COLUMNS - structure.cols
    most = np.minimum(lengths, lines)
    least = np.minimum(-(-(lengths + lack * (lengths > 0)) // X_LINE_COLUMNS), most)
    more = min(max(0, structure.x_line_changes - int(least.sum())), int((most - least).sum()))
    return least + _apportioned(more, most - least, most - least)


def row_lengths(structure: Structure) -> Whole:
    """Return ascending row lengths with a Structure's histogram, exact up to 64 and in every sum above."""
    at_least = np.array([*structure.rows_at_least, 0])
    up_to = np.array(structure.entries_up_to)
    levels = np.array(ROW_LENGTH_LEVELS[: len(up_to)])
    rows = at_least[:-1] - at_least[1:]
    # What the rows between two levels have above the lower one; those above both have the whole step.
    above = np.append(np.diff(up_to) - at_least[1:-1] * np.diff(levels), 0)
    lengths = [
        level + np.diff(np.arange(count + 1) * extra // max(count, 1))
        for level, count, extra in zip(levels, rows, above, strict=True)
        if count
    ]
    return np.sort(np.concatenate(lengths)) if lengths else np.zeros(0, dtype=np.int64)


def _ordered(lengths: Whole, surprises: int, seed: int) -> Whole:
    """Return `lengths` with about so many surprises: some of the sorted ones change places at random."""
    generator = np.random.default_rng(seed)
    turn = generator.permutation(len(lengths))
    draws = generator.random(len(lengths))
    low, high = 0.0, 1.0
    for _ in range(_SEARCH_STEPS):
        share = (low + high) / 2
        moved = _moved(lengths, turn, draws < share)
        if length_surprises(np.concatenate(([0], np.cumsum(moved)))) < surprises:
            low = share
        else:
            high = share
    return moved


def _moved(lengths: Whole, turn: Whole, chosen: NDArray[np.bool_]) -> Whole:
    moved = lengths.copy()
    moved[np.flatnonzero(chosen)] = lengths[turn[chosen[turn]]]
    return moved


@numba.njit(cache=True, nogil=True)
def _hash(stream, *places):  # type: ignore[no-untyped-def]
    bits = stream
    for place in places:
        bits = mixed(bits + np.uint64(place) * _GOLDEN + _ONE)
    return bits


@numba.njit(cache=True, nogil=True)
def _chosen_kind(bits, quotas, kinds):  # type: ignore[no-untyped-def]
    """Return how long ago the next line is to have been read: octave k < kinds, or _FIRST_READS; -1 for neither."""
    total = quotas[_FIRST_READS]
    for k in range(kinds):
        total += quotas[k]
    if total <= 0:
        return -1
    at = np.int64(bits % np.uint64(total))
    for k in range(kinds):
        at -= quotas[k]
        if at < 0:
            return k
    return _FIRST_READS


@numba.njit(cache=True, nogil=True)
def _is_near(line, diagonal, view):  # type: ignore[no-untyped-def]
    return diagonal - view.half_bandwidth - X_LINE_COLUMNS < line * X_LINE_COLUMNS <= diagonal + view.half_bandwidth


@numba.njit(cache=True, nogil=True)
def _read_before(state, octave, now, row, diagonal, view, bits):  # type: ignore[no-untyped-def]
    """Return a line whose last read was 2**octave to 2**(octave + 1) changes before `now`; -1 if none is found."""
    span = np.int64(1) << octave
    first = np.int64(bits & np.uint64(span - 1))
    for step in range(min(span, _LOOKS)):
        then = now - span - ((first + step) & (span - 1))
        if 0 <= then < state.trace.size:
            line = state.trace[then]
            if state.last[line] == then and state.row[line] != row and _is_near(line, diagonal, view):
                return line
    return -1


@numba.njit(cache=True, nogil=True)
def _next_free(free, line):  # type: ignore[no-untyped-def]
    end = line
    while free[end] != end:
        end = free[end]
    while free[line] != end:
        free[line], line = end, free[line]
    return end


@numba.njit(cache=True, nogil=True)
def _never_read(state, diagonal, view, bits):  # type: ignore[no-untyped-def]
    """Return a line never read, at a distance from the diagonal that the bands make likely; -1 if there is none."""
    share = np.float64(bits >> np.uint64(11)) * 2.0**-53
    band, below = 0, 0.0
    while band < view.band_ends.size - 1 and share >= view.band_ends[band]:
        below = view.band_ends[band]
        band += 1
    within = (share - below) / max(view.band_ends[band] - below, 1e-300)
    near = band * view.cols // 10
    far = max(near, min((band + 1) * view.cols // 10, view.half_bandwidth))
    away = near + np.int64(within * (far - near))
    sign = 1 if bits & _ONE else -1
    column = diagonal + sign * away
    if column < 0 or column >= view.cols:
        column = diagonal - sign * away
    column = min(max(column, 0), view.cols - 1)
    line = _next_free(state.free, column // X_LINE_COLUMNS)
    if line < state.last.size and _is_near(line, diagonal, view):
        return line
    line = _next_free(state.free, max(0, diagonal - view.half_bandwidth) // X_LINE_COLUMNS)
    return line if line < state.last.size and _is_near(line, diagonal, view) else -1


@numba.njit(cache=True, nogil=True)
def _any_line(state, row, diagonal, view):  # type: ignore[no-untyped-def]
    """Return the line nearest to the diagonal that the row does not read yet."""
    here = diagonal // X_LINE_COLUMNS
    lines = state.last.size
    for away in range(lines):
        if here - away >= 0 and state.row[here - away] != row:
            return here - away
        if here + away < lines and state.row[here + away] != row:
            return here + away
    return -1


@numba.njit(cache=True, nogil=True)
def _draw(indptr, visits, quotas, view, seed, indices):  # type: ignore[no-untyped-def]
    """Write sorted distinct columns such that lines of x are read as often, and again as soon, as `quotas` say."""
    stream = mixed(mixed(seed + _GOLDEN))
    lines = np.int64((view.cols + X_LINE_COLUMNS - 1) // X_LINE_COLUMNS)
    state = _State(
        np.zeros(visits.sum(), dtype=np.int32),
        np.full(lines, -1, dtype=np.int64),
        np.full(lines, -1, dtype=np.int64),
        np.arange(lines + 1),
    )
    chosen = np.zeros(visits.max(), dtype=np.int64)
    time, rows_left = np.int64(0), np.int64(0)
    for count in visits:
        rows_left += count > 0
    for row in range(visits.size):
        count = visits[row]
        if count == 0:
            continue
        diagonal = min(np.int64(row * view.slope), view.cols - 1)
        for each in range(count):
            chosen[each] = _line(state, quotas, each, time, (row, count, rows_left), diagonal, view, stream)
            if state.last[chosen[each]] < 0:
                state.free[chosen[each]] = chosen[each] + 1
            state.row[chosen[each]] = row
        rows_left -= 1
        chosen[:count].sort()
        for each in range(count):
            if time == 0 or state.trace[time - 1] != chosen[each]:
                state.trace[time] = chosen[each]
                state.last[chosen[each]] = time
                time += 1
        _fill_row(indices[indptr[row] : indptr[row + 1]], chosen[:count], view.cols, _hash(stream, row, lines))


@numba.njit(cache=True, nogil=True)
def _line(state, quotas, each, time, place, diagonal, view, stream):  # type: ignore[no-untyped-def]
    row, count, rows_left = place
    lines = state.last.size
    bits = _hash(stream, row, each)
    if 2 * count > lines:
        line = each * lines // count  # most lines of all: no choice to speak of
        if state.last[line] < 0:
            quotas[_FIRST_READS] -= 1
        return line
    if each == 0 and time > 0 and np.int64(bits % np.uint64(rows_left)) < quotas[_STAYS]:
        quotas[_STAYS] -= 1
        return np.int64(state.trace[time - 1])
    now = time + each
    kinds = np.int64(0)
    while kinds < _FIRST_READS and (np.int64(1) << kinds) <= now:
        kinds += 1
    for attempt in range(_ATTEMPTS):
        bits = mixed(bits + _GOLDEN)
        kind = _chosen_kind(bits, quotas, kinds)
        bits = mixed(bits + _GOLDEN)
        if kind == _FIRST_READS:
            line = _never_read(state, diagonal, view, bits)
        elif kind >= 0:
            line = np.int64(_read_before(state, kind, now, row, diagonal, view, bits))
        else:
            line = np.int64(-1)
        if line >= 0:
            quotas[kind] -= 1
            return line
    return _any_line(state, row, diagonal, view)


@numba.njit(cache=True, nogil=True)
def _fill_row(columns, lines, cols, bits):  # type: ignore[no-untyped-def]
    """Write the columns of a row: a run of neighbours in each of its lines, which have as many as can be alike."""
    at, need = 0, columns.size
    lack = max(0, (lines[-1] + 1) * X_LINE_COLUMNS - cols)
    for each in range(lines.size):
        later = lines.size - each - 1
        room = X_LINE_COLUMNS - (lack if later == 0 else 0)
        put = (need + np.int64(bits >> np.uint64(32)) % (later + 1)) // (later + 1)
        put = min(max(put, need - later * X_LINE_COLUMNS + (lack if later > 0 else 0)), room)
        bits = mixed(bits + _GOLDEN)
        first = lines[each] * X_LINE_COLUMNS + np.int64(bits % np.uint64(room - put + 1))
        for column in range(first, first + put):
            columns[at] = column
            at += 1
        need -= put
