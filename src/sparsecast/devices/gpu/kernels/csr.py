"""CSR on GPUs: a thread a row, 2 to 32 threads a row, as many as rows need, or equal work for each block.

Sources: CSR-scalar and CSR-vector of Bell and Garland (2009); with 32 threads a row the latter is the kernel
of Guo et al. (2014), with 16 that of Wang et al. (2017). The adaptive variant gives each few rows threads by
their lengths, as CSR-Adaptive of Greathouse and Daga (2014) does, and cuts long rows into pieces; other than
theirs it needs no shared memory. The balanced variant cuts the merge of row ends and entries into equal
pieces, as Merrill and Garland (2016) do.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.devices.binding import FormatKernels
from sparsecast.devices.gpu.kernels import KERNELS
from sparsecast.devices.gpu.launching import (
    THREADS,
    WARP,
    DeviceProduct,
    Kernel,
    Launch,
    Stored,
    base_of,
    blocks_of,
    cuda,
    device_function,
    made_once,
    offset_type,
    one_launch,
    scratch,
    term_of,
    upload,
)
from sparsecast.devices.gpu.tiles import (
    ITEMS,
    LAST_THREAD,
    ONE,
    SCANNED,
    TILE,
    TILE_AND_ONE,
    U32,
    Parts,
    carry_launches,
    lane_sum,
    scan,
)
from sparsecast.features.narrow_storage import GROUP_ROWS
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats.csr import CSR
from sparsecast.formats.narrowing import NO_BASES
from sparsecast.machines.machine import Machine

#: Threads a row of the variants with a fixed number of them.
LANES = (1, 2, 4, 8, 16, 32)

VARIANTS = ("scalar", *(f"vector{lanes}" for lanes in LANES[1:]), "balanced", "adaptive")

#: Entries of a row for each of its threads. On an H100, 2 to 3.5 choose equally well among the kernels of 136
#: benchmark products, and 3.5 best where rows have 17 and 27 entries.
ENTRIES_A_LANE = 3.5

#: A row in which each of its threads takes more entries than this, and more than SHARES times its even share
#: of the matrix, holds its block up, and maybe the device.
LONGEST_WALK, SHARES = 64, 2

#: Most entries of a row for each of its threads, as long as it has not all of a warp.
ADAPTED_WALK = 16

#: Entries of a piece of a long row, of which a warp sums up one.
PIECE = 1024


@made_once
def _scalar(stored: Stored) -> Kernel:
    value, offset, base_of_row, term = stored.value, stored.offset, base_of(stored), term_of(stored)

    def csr_scalar(indptr, indices, data, bases, rows, x, y):
        i = cuda.grid(1)
        if i < rows:
            total = value(0)
            base = base_of_row(bases, i)
            k = offset(indptr[i])
            end = offset(indptr[i + 1])
            while k < end:
                total += term(data, indices, base, x, k)
                k = offset(k + 1)
            y[i] = total

    return csr_scalar


@made_once
def _vector(lanes: int, stored: Stored) -> Kernel:
    value, offset, base_of_row, term = stored.value, stored.offset, base_of(stored), term_of(stored)
    shift, last_lane = lanes.bit_length() - 1, lanes - 1

    def csr_vector(indptr, indices, data, bases, rows, x, y):
        i = cuda.grid(1) >> shift
        lane = cuda.threadIdx.x & last_lane
        total = value(0)
        if i < rows:
            base = base_of_row(bases, i)
            k = offset(indptr[i] + lane)
            end = offset(indptr[i + 1])
            while k < end:
                total += term(data, indices, base, x, k)
                k = offset(k + lanes)
        total = lane_sum(total, lanes)
        if lane == 0 and i < rows:
            y[i] = total

    return csr_vector


@made_once
def _adaptive(stored: Stored) -> Kernel:
    value, offset, base_of_row, term = stored.value, stored.offset, base_of(stored), term_of(stored)

    def csr_adaptive(indptr, indices, data, bases, firsts, shifts, piece_rows, sums, tasks, rows, x, y):
        task = cuda.grid(1) >> 5
        lanes, lane = np.int32(1), np.int32(0)
        total = value(0)
        i = place = offset(0)
        is_summed = False
        if task < tasks:
            shift = np.int32(shifts[task])
            lanes = np.int32(1 << shift)
            lane = np.int32(cuda.threadIdx.x & 31)
            i = place = offset(firsts[task] + (lane >> shift))
            lane = np.int32(lane & (lanes - 1))
            # Behind the pointers to rows are those to pieces: of the same shape, with sums of their own.
            is_piece = firsts[task] > rows
            if is_piece:
                i = offset(piece_rows[place - rows - 1])
            if i < rows:
                k = offset(indptr[place])
                end = offset(indptr[place + 1])
                is_summed = end - k <= PIECE
                if is_summed:
                    base = base_of_row(bases, i)
                    k = offset(k + lane)
                    # Two entries on their way at once: the compiler does so only where the step is constant.
                    following = offset(k + lanes)
                    while following < end:
                        first_term = term(data, indices, base, x, k)
                        second_term = term(data, indices, base, x, following)
                        total += first_term
                        total += second_term
                        k = offset(following + lanes)
                        following = offset(k + lanes)
                    if k < end:
                        total += term(data, indices, base, x, k)
        total = lane_sum(total, lanes)
        if is_summed and lane == 0:
            if place < rows:
                y[i] = total
            else:
                sums[offset(place - rows - 1)] = total

    return csr_adaptive


@device_function
def row_ends_before(place, row_ends, rows, entries):
    """Count the row ends among the first `place` steps of the merge of a tile's row ends and entries."""
    low = U32(place - entries) if place > entries else U32(0)
    high = U32(min(place, rows))
    while low < high:
        middle = U32(U32(low + high) >> ONE)
        if U32(row_ends[middle] + middle) < place:
            low = U32(middle + ONE)
        else:
            high = middle
    return low


@made_once
def _balanced(stored: Stored) -> Kernel:
    value, index, offset, term = stored.value, stored.index, stored.offset, term_of(stored)

    def csr_balanced(indptr, indices, data, tile_rows, carries, tiles, tiles_each, work, x, y):
        products = cuda.shared.array(TILE, value)
        row_ends = cuda.shared.array(TILE_AND_ONE, np.uint32)
        sums = cuda.shared.array(SCANNED, value)
        ended = cuda.shared.array(SCANNED, np.uint32)
        thread = U32(cuda.threadIdx.x)
        tile = offset(cuda.blockIdx.x * tiles_each)
        last = offset(min(tile + tiles_each, tiles))
        carry = value(0)
        while tile < last:
            first_row, next_row = tile_rows[tile], tile_rows[tile + 1]
            first = offset(tile * TILE - first_row)
            tile = offset(tile + 1)
            rows = U32(next_row - first_row)
            entries = U32(min(tile * TILE, work) - next_row - first)
            j = thread
            while j < entries:
                k = offset(first + j)
                products[j] = term(data, indices, index(0), x, k)
                j = U32(j + THREADS)
            i = thread
            while i < rows:
                row_ends[i] = U32(indptr[offset(first_row + i) + 1] - first)
                i = U32(i + THREADS)
            if thread == 0:
                row_ends[rows] = TILE_AND_ONE  # of the row that stays open
            cuda.syncthreads()

            work_here = U32(rows + entries)
            place = U32(min(U32(thread * ITEMS), work_here))
            end = U32(min(U32(place + ITEMS), work_here))
            i = begun = row_ends_before(place, row_ends, rows, entries)
            j = U32(place - i)
            head = value(0)
            total = carry if thread == 0 else value(0)
            while place < end:
                if row_ends[i] <= j:
                    if i == begun:
                        head = total
                    else:
                        y[offset(first_row + i)] = total
                    total = value(0)
                    i = U32(i + ONE)
                else:
                    total += products[j]
                    j = U32(j + ONE)
                place = U32(place + ONE)

            has_ended = i > begun
            last_sums = scan(total, ONE if has_ended else U32(0), sums, ended)
            if has_ended:
                if thread > 0:
                    head += sums[U32(last_sums + thread - ONE)]
                y[offset(first_row + begun)] = head
            carry = sums[U32(last_sums + LAST_THREAD)]
        if thread == 0:
            carries[cuda.blockIdx.x] = carry

    return csr_balanced


def _choose(blocks: RowBlocks, machine: Machine, dtype: str) -> NDArray[np.int64]:
    """Choose threads by the mean row length, or, where a row holds the device up, the adaptive variant."""
    rows = np.maximum(blocks.rows, 1)
    variant = _least_lanes(blocks.nnz / rows / ENTRIES_A_LANE)
    walk = blocks.row_length_max / np.array(LANES)[variant]
    gpu = machine.gpu
    even_share = blocks.nnz / (gpu.multiprocessors * gpu.threads_per_multiprocessor if gpu else 1)
    is_huge = (walk > LONGEST_WALK) & (walk > SHARES * even_share)
    return np.where(is_huge, VARIANTS.index("adaptive"), variant)


def _least_lanes(threads: NDArray[Any]) -> NDArray[np.int64]:
    """Return the place in LANES of the least number that reaches `threads`, or of the last."""
    return np.minimum(np.searchsorted(LANES, threads), len(LANES) - 1)


def _bind(matrix: CSR, variant: str, threads: int) -> DeviceProduct:
    if variant == "adaptive":
        return DeviceProduct(_adaptive_launches(matrix))
    if variant == "balanced":
        return DeviceProduct(_balanced_launches(matrix))
    arrays = upload(matrix.name, matrix.indptr, matrix.indices, matrix.data, matrix.bases)
    stored = Stored.of(matrix, offset_type(max(matrix.nnz, len(matrix.indptr))))
    rows, lanes = matrix.shape[0], LANES[VARIANTS.index(variant)]
    kernel = _scalar(stored) if lanes == 1 else _vector(lanes, stored)
    return one_launch(kernel, rows * lanes, (*arrays, np.int64(rows)), matrix.dtype)


def _adaptive_launches(matrix: CSR) -> list[Launch]:
    """Return the launches of tasks for warps: rows that follow each other, or a piece of a long row."""
    indptr, rows, dtype = matrix.indptr, matrix.shape[0], matrix.dtype
    if not rows:
        return []
    lengths = np.diff(indptr)
    long = np.flatnonzero(lengths > PIECE)
    bounds = 1 - (-lengths[long] // PIECE)  # of the pieces of a row
    starts, ends, owners = (np.repeat(of_row, bounds) for of_row in (indptr[long], indptr[long + 1], long))
    pieces = np.minimum(starts + PIECE * _numbered(bounds), ends)
    # The row of each piece; the number of rows where another row's pieces begin.
    piece_rows = np.where(pieces < ends, owners, rows).astype(indptr.dtype)
    lengths[long] = 0
    in_blocks = np.pad(lengths, (0, -rows % WARP)).reshape(-1, WARP)
    mean = in_blocks.mean(axis=1) / ENTRIES_A_LANE
    shift = _least_lanes(np.maximum(mean, in_blocks.max(axis=1, initial=0) / ADAPTED_WALK))
    tasks = 1 << shift  # of a block
    shifts = np.repeat(shift, tasks)  # binary logarithm of the threads a row
    # The first row of a task, or the number of rows, 1 and the number of the piece.
    firsts = np.repeat(WARP * np.arange(len(tasks)), tasks) + _numbered(tasks) * (WARP >> shifts)
    has_rows, pieces_at = firsts < rows, rows + 1 + np.flatnonzero(piece_rows < rows)
    firsts = np.append(firsts[has_rows], pieces_at).astype(indptr.dtype)
    shifts = np.append(shifts[has_rows], np.full(len(pieces_at), len(LANES) - 1)).astype(np.uint8)
    extended = np.append(indptr, pieces).astype(indptr.dtype, copy=False)
    stored = Stored.of(matrix, offset_type(max(matrix.nnz, len(extended))))
    arrays = upload(matrix.name, extended, matrix.indices, matrix.data, matrix.bases)
    of_tasks = upload(matrix.name, firsts, shifts, piece_rows)
    sums, count = scratch(max(1, len(pieces)), dtype), len(firsts)
    arguments = (*arrays, *of_tasks, sums, np.int64(count), np.int64(rows))
    launch = Launch(_adaptive(stored), blocks_of(WARP * count), arguments, dtype)
    if not len(pieces):
        return [launch]
    return [launch, *carry_launches(sums, np.where(piece_rows < rows, piece_rows, -1), adds=False)]


def _numbered(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return 0, 1, ... counts[0] - 1, 0, 1, ... counts[1] - 1 and so on."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def _balanced_launches(matrix: CSR) -> list[Launch]:
    indptr, rows, dtype = matrix.indptr, matrix.shape[0], matrix.dtype
    if not rows:
        return []
    if matrix.bases.any():  # rows, and so bases, are not known as entries are read
        heads = np.append(indptr[:-1:GROUP_ROWS], matrix.nnz)
        in_full = np.asarray(matrix.indices + np.repeat(matrix.bases, np.diff(heads)))
        matrix = replace(matrix, indices=in_full, bases=NO_BASES)
    arrays = upload(matrix.name, indptr, matrix.indices, matrix.data)
    parts = Parts(rows + matrix.nnz)
    # The end of row i comes after as many units of work: the entries up to it and the ends before it.
    before = np.arange(rows, dtype=np.int64) + indptr[1:]
    bounds = np.minimum(np.arange(parts.tiles + 1) * TILE, parts.work)
    tile_rows = np.searchsorted(before, bounds)
    entries = bounds - tile_rows
    last_row, last_entry = tile_rows[parts.ends], entries[parts.ends]
    is_open = indptr[last_row] < last_entry
    carries = scratch(parts.count, dtype)
    placed = upload(matrix.name, tile_rows.astype(parts.offset))
    kernel = _balanced(Stored.of(matrix, parts.offset))
    launch = Launch(kernel, parts.count, (*arrays, *placed, carries, *parts.sizes), dtype)
    return [launch, *carry_launches(carries, np.where(is_open, last_row, -1), adds=True)]


KERNELS.register("csr")(FormatKernels(VARIANTS, _choose, _bind, reads_narrow=True))
