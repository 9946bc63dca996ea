"""Synthetic twins of real matrices, made from a Structure alone.

The paper's twin (Gahvari et al. 2007, section III) has the matrix's dimension, density, block size and bands.
Its first band is a tenth of the dimension wide and its rows are equally long, so it lacks what decides the
time of many products: how soon a cache line of x is read again, and how many ends of rows are mispredicted.
Our twin keeps the row lengths, the number of mispredicted rows, the number of lines of x that are read, and
the number of reads between two reads of a line.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.errors import InputError
from sparsecast.features.blocks import BLOCK_SIZES
from sparsecast.features.row_lengths import ROW_LENGTH_LEVELS, find_mispredicted_rows
from sparsecast.features.structure import Structure
from sparsecast.features.sweep import X_LINE_COLUMNS, X_REUSE_ELEMENTS
from sparsecast.matrices.banded_synthesis import Index, Indices, filled, grid_of, opened, pattern_of
from sparsecast.matrices.synthesis import (
    Whole,
    apportioned,
    check_least,
    csr_bytes,
    require_memory,
    starts_of,
    uniform,
)
from sparsecast.system.integers import GOLDEN, index_dtype, mixed, stream_of
from sparsecast.system.jit import inner, njit

_ONE, _HALF_BITS = np.uint64(1), np.uint64(32)

# Kinds of reads of a cell: octave k of the reads since its last read, first reads, repeats of the last cell.
_FIRST_READS, _STAYS = X_REUSE_ELEMENTS - 1, X_REUSE_ELEMENTS

#: Attempts to draw a cell: earlier reads tested for a given age, and ages drawn.
_LOOKS, _ATTEMPTS = 64, 3

#: Halvings in the search for how many rows must change places.
_HALVINGS = 12


def banded_twin(structure: Structure, block: int = 1, *, seed: int) -> csr_array:
    """Return the paper's twin: same dimensions, entries, block size and bands (Gahvari et al. 2007).

    It has exactly as many entries as the real matrix: the last blocks are cut off where needed. Rows and
    columns beyond the last whole block are empty. Where whole blocks cannot hold the entries, `block` is 1.
    The bands of a rectangular matrix follow its own diagonal. Parameters and result are as in `twin`.
    """
    rows, cols, nnz = structure.rows, structure.cols, structure.nnz
    index = _checked(structure, block, seed)
    block = block if (rows // block) * (cols // block) * block**2 >= nnz else 1
    indptr = np.full(rows + 1, nnz, dtype=index)
    if nnz == 0:
        return filled(indptr, np.empty(0, dtype=index), cols, seed)
    grid = grid_of(rows // block, cols // block, -(-nnz // block**2), False)
    equal = np.ones(grid.block_rows, dtype=np.int64)
    starts, indices = pattern_of(grid, np.array(structure.bands.histogram), equal, seed, index)
    starts, indices = opened(starts, indices, (block, block))
    np.minimum(starts, nnz, out=indptr[: len(starts)])
    return filled(indptr, indices[:nnz], cols, seed)


def twin(structure: Structure, block: int = 1, *, seed: int) -> csr_array:
    """Return our twin: what the time of a product depends on, as far as a Structure knows it.

    It has the dimensions and the number of entries of the real matrix; its row lengths, exactly up to 64 and
    to an eighth above; about as many mispredicted rows; about as many reads of new cache lines of x, with the
    ages of the lines read again; entries within its bandwidth where possible; and, in blocks, their fill.
    Bands only say where first reads of a line are likely.

    `structure` is that of the real matrix. `block` is the side of the blocks whose fill is kept, 1 or one of
    BLOCK_SIZES; this many rows share their columns.

    The result is sorted, without duplicates, with float64 values uniform in (-1, 1) without zeros. An
    InputError says that `block` or `seed` is out of range, or that the Structure contradicts itself; a
    MatrixSizeError that the twin does not fit in memory.
    """
    index = _checked(structure, block, seed)
    if structure.nnz == 0:
        empty = np.zeros(structure.rows + 1, dtype=index)
        return filled(empty, np.empty(0, dtype=index), structure.cols, seed)
    block = block if structure.row_lengths.max <= structure.cols // block * block else 1
    lengths = _ordered(row_lengths(structure), block, structure.row_lengths.mispredicted or 0, seed)
    indptr = starts_of(lengths, index)
    wanted = structure.locality.line_changes
    indices = _drawn(structure, _Groups.of(structure, lengths, block, wanted), indptr, seed)
    if block > 1:
        # Blocks that lie across the ends of lines read more of them than they were counted for.
        lines = indices // X_LINE_COLUMNS
        wanted = round(wanted * wanted / (1 + np.count_nonzero(lines[1:] != lines[:-1])))
        indices = _drawn(structure, _Groups.of(structure, lengths, block, wanted), indptr, seed)
    return filled(indptr, indices, structure.cols, seed)


def _checked(structure: Structure, block: int, seed: int) -> Index:
    """Return the type of the twin's indices."""
    structure.checked()  # compiled loops are indexed by its counts
    if block not in (1, *BLOCK_SIZES):
        raise InputError(f"block = {block}: expected 1 or one of {BLOCK_SIZES}; give one of them")
    check_least("seed", seed, 0)
    index = index_dtype(structure.nnz, structure.cols)
    arrays = csr_bytes(structure.rows, structure.nnz, index.itemsize)
    # The blocks, or the lines read one after the other, and counts of each row and line.
    work = 4 * structure.nnz + 100 * structure.rows + 3 * structure.cols
    require_memory(arrays + work, f"a twin of {structure.rows} rows with {structure.nnz} entries")
    return index


def row_lengths(structure: Structure) -> Whole:
    """Return ascending row lengths with a Structure's counts: exact up to 64, with exact sums above."""
    at_least = np.array([*structure.row_lengths.rows_at_least, 0])
    up_to = np.array(structure.row_lengths.entries_up_to)
    levels = np.array(ROW_LENGTH_LEVELS[: len(up_to)])
    rows = at_least[:-1] - at_least[1:]
    # What the rows between two levels have above the lower one; those above both have the whole step.
    above = np.append(np.diff(up_to) - at_least[1:-1] * np.diff(levels), 0)
    lengths = [
        level + np.diff(np.arange(count + 1) * extra // max(count, 1))
        for level, count, extra in zip(levels, rows, above, strict=True)
    ]
    return np.sort(np.concatenate(lengths))


def _ordered(lengths: Whole, block: int, mispredicted: int, seed: int) -> Whole:
    """Return ascending `lengths` in an order with about `mispredicted` mispredicted rows.

    Groups of `block` rows stay together. The more groups change places at random, the more rows are
    mispredicted; the share is found by bisection.
    """
    whole = len(lengths) // block
    # The longest in the middle, where the columns within reach are as many as they can be.
    groups = np.roll(lengths[: whole * block].reshape(whole, block), whole // 2, axis=0)
    draws = uniform(2 * whole, seed)
    draws, turn = draws[:whole], np.argsort(draws[whole:], kind="stable")
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        share = (low + high) / 2
        moves = draws < share
        moved = groups.copy()
        moved[moves] = groups[turn[moves[turn]]]
        ordered = np.concatenate((moved.reshape(-1), lengths[whole * block :]))
        if np.count_nonzero(find_mispredicted_rows(ordered)) < mispredicted:
            low = share
        else:
            high = share
    return ordered


class _Groups(NamedTuple):
    """Groups of rows that share their blocks, and the cells of these blocks.

    A cell is a run of `slots` columns of blocks, nearly as wide as a line of x, and stands for it.
    """

    block: int
    slots: int
    cells: int
    lack: int  # slots missing from the last cell
    blocks: Whole  # of each group
    visits: Whole  # cells that each row of a group reads

    @classmethod
    def of(cls, structure: Structure, lengths: Whole, block: int, line_changes: int) -> _Groups:
        starts = np.arange(0, len(lengths), block)
        longest, entries = np.maximum.reduceat(lengths, starts), np.add.reduceat(lengths, starts)
        fill = 1.0 if block == 1 else structure.blocks.fill[BLOCK_SIZES.index(block)]
        most = np.minimum(entries, structure.cols // block)
        least = np.minimum(-(-longest // block), most)
        blocks = _between(least, most, round(structure.nnz * fill / block**2))
        slots = -(-X_LINE_COLUMNS // block)
        cells = -(-(structure.cols // block) // slots)
        lack = cells * slots - structure.cols // block
        least = np.minimum(-(-(blocks + lack * (blocks > 0)) // slots), np.minimum(blocks, cells))
        within_reach = min(cells, 2 * structure.bands.half_bandwidth // (slots * block) + 1)
        most = np.maximum(least, np.minimum(blocks, within_reach))
        return cls(block, slots, cells, lack, blocks, _between(least, most, round(line_changes / block)))


def _between(least: Whole, most: Whole, total: int) -> Whole:
    """Return whole numbers between `least` and `most`, with the sum `total` where possible."""
    more = min(max(0, total - int(least.sum())), int((most - least).sum()))
    return least + apportioned(more, most - least, most - least)


class _View(NamedTuple):
    slots: int
    lack: int
    slope: float  # of the diagonal, in cells a group
    reach: float  # cells from the diagonal that hold entries
    band_ends: NDArray[np.float64]  # shares of the entries up to the end of each band


class _State(NamedTuple):
    """Which cells were read, in time order in `trace`.

    For each cell, `last` is the time of its last read (-1: never), `group` the group of that read, and `free`
    leads to the next cell that was never read.
    """

    trace: NDArray[np.int32]
    last: Whole
    group: Whole
    free: Whole


def _drawn(structure: Structure, groups: _Groups, indptr: Indices, seed: int) -> Indices:
    quotas = np.zeros(X_REUSE_ELEMENTS + 1, dtype=np.int64)
    quotas[:X_REUSE_ELEMENTS] = np.rint(
        np.array(structure.locality.reuse_histogram) * structure.locality.line_changes
    )
    # All rows of a group but the first read again what the row before them read.
    repeats = (groups.block - 1) * groups.visits
    octaves = np.frexp(np.maximum(groups.visits, 1))[1] - 1
    quotas[:X_REUSE_ELEMENTS] -= np.bincount(octaves, repeats, X_REUSE_ELEMENTS).astype(np.int64)
    np.maximum(quotas, 0, out=quotas)
    quotas[_STAYS] = max(0, int(groups.visits.sum()) - int(quotas.sum()))
    width = groups.slots * groups.block
    view = _View(
        groups.slots,
        groups.lack,
        groups.cells / len(groups.visits),
        1 + structure.bands.half_bandwidth / width,
        np.cumsum(structure.bands.histogram),
    )
    state = _State(
        np.zeros(int(groups.visits.sum()) * groups.block, dtype=np.int32),
        np.full(groups.cells, -1, dtype=np.int64),
        np.full(groups.cells, -1, dtype=np.int64),
        np.arange(groups.cells + 1),
    )
    starts = starts_of(groups.blocks, np.int64)
    columns = np.empty(int(starts[-1]), dtype=indptr.dtype)
    seed64 = np.uint64(seed % 2**64)
    _draw(starts, groups.visits, groups.block, quotas, view, state, seed64, columns)
    if groups.block == 1:
        return columns
    indices = np.empty(structure.nnz, dtype=indptr.dtype)
    _thin_out(starts, columns, groups.block, indptr, seed64, indices)
    return indices


@njit(cache=True, nogil=True)
def _draw(starts, visits, repeats, quotas, view, state, seed, columns):
    stream = stream_of(seed)
    chosen = np.zeros(visits.max(), dtype=np.int64)
    time, groups_left = np.int64(0), np.int64(np.count_nonzero(visits))
    for group in range(visits.size):
        count = visits[group]
        if count == 0:
            continue
        bits = mixed(stream + np.uint64(group) * GOLDEN)
        for number in range(count):
            bits = mixed(bits + GOLDEN)
            cell = _cell(state, quotas, (number, count, groups_left), time, group, view, bits)
            if state.last[cell] < 0:
                state.free[cell] = cell + 1
            state.group[cell] = group
            chosen[number] = cell
        groups_left -= 1
        chosen[:count].sort()
        for _ in range(repeats):
            for cell in chosen[:count]:
                if time == 0 or state.trace[time - 1] != cell:
                    state.trace[time] = cell
                    state.last[cell] = time
                    time += 1
        lack = view.lack if chosen[count - 1] == state.last.size - 1 else 0
        _fill_cells(columns[starts[group] : starts[group + 1]], chosen[:count], view.slots, lack, bits)


@inner
def _cell(state, quotas, place, time, group, view, bits):
    """Return the next cell of a group: one of the drawn age, if there is one."""
    number, count, groups_left = place
    cells = state.last.size
    if 2 * count > cells:
        # More than half of all cells: spread them evenly.
        cell = np.int64(number * cells // count)
        quotas[_FIRST_READS] -= state.last[cell] < 0
        return cell
    if number == 0 and time > 0 and np.int64(bits % np.uint64(groups_left)) < quotas[_STAYS]:
        quotas[_STAYS] -= 1
        return np.int64(state.trace[time - 1])
    diagonal = min(np.int64((group + 0.5) * view.slope), cells - 1)
    for _ in range(_ATTEMPTS):
        bits = mixed(bits + GOLDEN)
        kind = _kind(quotas, time + number, bits)
        bits = mixed(bits + GOLDEN)
        cell = np.int64(-1)
        if kind == _FIRST_READS:
            cell = _never_read(state, diagonal, view, bits)
        elif kind >= 0:
            cell = _read_before(state, kind, time + number, group, diagonal, view, bits)
        if cell >= 0:
            quotas[kind] -= 1
            return cell
    # The cell nearest to the diagonal that the group does not have yet.
    for away in range(cells):
        if diagonal - away >= 0 and state.group[diagonal - away] != group:
            return diagonal - away
        if diagonal + away < cells and state.group[diagonal + away] != group:
            return diagonal + away
    return np.int64(-1)


@inner
def _kind(quotas, now, bits):
    """Return a random age, an octave up to `now` or _FIRST_READS, by the quotas; -1 if none is left."""
    total, kinds = max(quotas[_FIRST_READS], 0), 0
    while kinds < _FIRST_READS and (np.int64(1) << kinds) <= now:
        total += quotas[kinds]
        kinds += 1
    if total <= 0:
        return -1
    at = np.int64(bits % np.uint64(total))
    for kind in range(kinds):
        at -= quotas[kind]
        if at < 0:
            return kind
    return _FIRST_READS


@inner
def _read_before(state, octave, now, group, diagonal, view, bits):
    """Return a cell last read from 2**octave up to 2**(octave + 1) reads ago; -1 if none is found."""
    span = np.int64(1) << octave
    first = np.int64(bits & np.uint64(span - 1))
    for step in range(min(span, _LOOKS)):
        then = now - span - ((first + step) & (span - 1))
        if 0 <= then < state.trace.size:
            cell = np.int64(state.trace[then])
            is_near = abs(cell - diagonal) <= view.reach
            if is_near and state.last[cell] == then and state.group[cell] != group:
                return cell
    return np.int64(-1)


@inner
def _never_read(state, diagonal, view, bits):
    """Return a cell never read, at a distance drawn from the bands; -1 if there is none."""
    cells, bands = state.last.size, view.band_ends.size
    share = np.float64(bits >> np.uint64(11)) * 2.0**-53
    band, below = 0, 0.0
    while band < bands - 1 and share >= view.band_ends[band]:
        below = view.band_ends[band]
        band += 1
    within = (share - below) / max(view.band_ends[band] - below, 1e-300)
    near = band * cells / bands
    far = max(near, min((band + 1) * cells / bands, view.reach))
    away = np.int64(near + within * (far - near))
    cell = diagonal + away if bits & _ONE else diagonal - away
    if cell < 0 or cell >= cells:
        cell = 2 * diagonal - cell
    cell = _next_free(state.free, min(max(cell, 0), cells - 1))
    if cell == cells or abs(cell - diagonal) > view.reach:
        cell = _next_free(state.free, max(0, diagonal - np.int64(view.reach)))
    return cell if cell < cells and abs(cell - diagonal) <= view.reach else np.int64(-1)


@inner
def _next_free(free, cell):
    end = cell
    while free[end] != end:
        end = free[end]
    while free[cell] != end:
        free[cell], cell = end, free[cell]
    return end


@inner
def _fill_cells(columns, cells, slots, lack, bits):
    """Write a run of neighbouring columns in each cell, spread as evenly as possible."""
    at, need = 0, columns.size
    for number in range(cells.size):
        later = cells.size - number - 1
        room = slots - (lack if later == 0 else 0)
        put = (need + np.int64(bits >> _HALF_BITS) % (later + 1)) // (later + 1)
        put = min(max(put, need - later * slots + (lack if later > 0 else 0)), room)
        bits = mixed(bits + GOLDEN)
        first = cells[number] * slots + np.int64(bits % np.uint64(room - put + 1))
        for column in range(first, first + put):
            columns[at] = column
            at += 1
        need -= put


@njit(cache=True, nogil=True)
def _thin_out(starts, columns, block, indptr, seed, indices):
    """Write the entries of each row: places of its group's blocks, evenly thinned out to its length."""
    stream = ~stream_of(seed)
    at = 0
    for row in range(indptr.size - 1):
        first, last = starts[row // block], starts[row // block + 1]
        room, length = (last - first) * block, np.int64(indptr[row + 1] - indptr[row])
        if length == 0:
            continue
        error = np.int64(mixed(stream + np.uint64(row) * GOLDEN) % np.uint64(room))
        for block_place in range(first, last):
            for column in range(columns[block_place] * block, columns[block_place] * block + block):
                error += length
                if error >= room:
                    error -= room
                    indices[at] = column
                    at += 1
