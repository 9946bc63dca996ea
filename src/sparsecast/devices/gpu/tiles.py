"""Equal work for every block of threads, whatever the rows: tiles of entries, and sums of divided rows.

A tile is what a block holds in shared memory at once: its threads multiply entries side by side, then each
sums up ITEMS consecutive ones. A row may begin in one thread, tile or block and end in another. Within a
block, a scan passes the partial sum on to the thread in which the row ends. Between blocks it becomes a
carry, and a second launch adds the carries to y. No two threads ever add to one number at the same time, so
the order of additions, and with it every bit of the result, is the same each time.

Sums over the lanes of a warp are the only code that differs between a device and the simulator of numba-cuda,
which has no warp shuffles. There, the lanes meet in shared memory, in the same order of additions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparsecast.devices.gpu.launching import (
    SIMULATED,
    THREADS,
    WARP,
    DeviceArray,
    Kernel,
    Launch,
    blocks_of,
    cuda,
    device_function,
    made_once,
    offset_type,
    upload,
)

_ALL_LANES = 0xFFFFFFFF


def _sum_by_shuffles(value, lanes):
    offset = lanes >> 1
    while offset > 0:
        value += cuda.shfl_down_sync(_ALL_LANES, value, offset)
        offset >>= 1
    return value


def _sum_in_shared_memory(value, lanes):
    shared = cuda.shared.array(cuda.blockDim.x, value.dtype)
    thread = cuda.threadIdx.x
    shared[thread] = value
    cuda.syncthreads()
    if thread % lanes:
        return value
    values = [shared[thread + lane] for lane in range(lanes)]
    while len(values) > 1:
        half = len(values) // 2
        values = [values[lane] + values[lane + half] for lane in range(half)]
    return values[0]


#: lane_sum(value, lanes): the sum over a group of 1, 2, ..., 32 neighbouring lanes, in the first of them; the
#: result of the others is undefined. Every thread of a block must call it, once in a kernel.
lane_sum = device_function(_sum_in_shared_memory if SIMULATED else _sum_by_shuffles)


#: Entries that a thread sums up by itself. Odd, so that 32 threads read from 32 banks of shared memory.
ITEMS = 7

TILE = THREADS * ITEMS

#: Entries of shared arrays: a tile and what follows it, and what `scan` needs.
TILE_AND_ONE, SCANNED = TILE + 1, 2 * THREADS

#: Within a tile, numbers are unsigned: signed ones cost a wrap-around test for every access to shared memory.
U32 = np.uint32
ONE, LAST_THREAD = U32(1), U32(THREADS - 1)

#: Greatest number of parts; with more tiles, each block takes several, which keeps the carries few. It is
#: many times the blocks that a device holds at once, so the last ones leave it idle for a short time only.
MAX_PARTS = 1 << 14


class Parts:
    """Units of work cut into tiles, and these into parts, one for each block of threads.

    The last tile and the last part may be smaller than the others.
    """

    def __init__(self, work: int) -> None:
        self.work, self.tiles = work, blocks_of(work, TILE)
        tiles_each = blocks_of(self.tiles, MAX_PARTS)
        self.count = blocks_of(self.tiles, tiles_each) if work else 0
        #: The end of the tiles of each part: shape (count,).
        self.ends = np.minimum(np.arange(1, self.count + 1) * tiles_each, self.tiles)
        self.offset = offset_type(work)
        #: Tiles, tiles of a part and units, as kernels take them.
        self.sizes = tuple(map(self.offset, (self.tiles, tiles_each, work)))


@device_function
def scan(total, ended, sums, ends):
    """Sum up `total` over each thread of a block and the threads before it, back to the last row end.

    The last thread whose `ended` is not 0 is the first that counts. The sums are in `sums`, at the returned
    place plus the thread's number. Both shared arrays have SCANNED entries.
    """
    thread, place, step = U32(cuda.threadIdx.x), U32(0), ONE
    while step < THREADS:
        sums[U32(place + thread)] = total
        ends[U32(place + thread)] = ended
        cuda.syncthreads()
        if thread >= step:
            before = U32(place + U32(thread - step))
            if ended == 0:
                total += sums[before]
            ended |= ends[before]
        # Two alternating places: one barrier per step suffices.
        place = U32(THREADS - place)
        step = U32(step + step)
    sums[U32(place + thread)] = total
    cuda.syncthreads()
    return place


@made_once
def _add_carries(value: type, adds: bool) -> Kernel:
    def add_carries(carries, firsts, lasts, rows, runs, x, y):
        run = cuda.grid(1) >> 5
        lane = cuda.threadIdx.x & 31
        total = value(0)
        if run < runs:
            part = firsts[run] + lane
            while part < lasts[run]:
                total += carries[part]
                part += WARP
        total = lane_sum(total, WARP)
        if lane == 0 and run < runs:
            if adds:
                y[rows[run]] += total
            else:
                y[rows[run]] = total

    return add_carries


def carry_launches(carries: DeviceArray, left_open: NDArray[np.int64], *, adds: bool) -> list[Launch]:
    """Return the launch that adds the carries to y, or writes their sums; none if no part leaves a row open.

    `carries` holds the partial sum of each part for the row that it leaves open, and `left_open` that row, or
    -1 where the part ends with a row: both of shape (parts,). `adds` says whether y holds something of them.
    """
    changes = np.flatnonzero(np.diff(left_open, prepend=-2))
    ends = np.append(changes[1:], len(left_open))
    is_open = left_open[changes] >= 0
    firsts, lasts = changes[is_open], ends[is_open]
    if not len(firsts):
        return []
    rows = left_open[firsts]
    arrays = upload("carries", firsts.astype(np.int32), lasts.astype(np.int32), rows)
    kernel = _add_carries(carries.dtype.type, adds)
    arguments = (carries, *arrays, np.int64(len(firsts)))
    return [Launch(kernel, blocks_of(WARP * len(firsts)), arguments, carries.dtype)]
