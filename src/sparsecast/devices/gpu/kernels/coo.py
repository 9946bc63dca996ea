"""COO on GPUs: a segmented reduction over tiles of entries, and zeros for the rows that have none.

Bell and Garland (2009, section 4.3) reduce a warp's entries with a step of the scan for each entry. Here each
thread sums up entries that follow each other, and one scan serves the whole tile.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.devices.binding import FormatKernels, only_variant
from sparsecast.devices.gpu.kernels import KERNELS
from sparsecast.devices.gpu.launching import (
    THREADS,
    DeviceProduct,
    Kernel,
    Launch,
    blocks_of,
    cuda,
    made_once,
    scratch,
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
    scan,
)
from sparsecast.formats.coo import COO


@made_once
def _zeros(value: type) -> Kernel:
    def coo_zeros(empty_rows, count, x, y):
        i = cuda.grid(1)
        if i < count:
            y[empty_rows[i]] = value(0)

    return coo_zeros


@made_once
def _segments(value: type, index: type, offset: type, adds: bool) -> Kernel:
    def coo_segments(rows, cols, data, carries, tiles, tiles_each, nnz, x, y):
        products = cuda.shared.array(TILE, value)
        row_of = cuda.shared.array(TILE_AND_ONE, index)
        sums = cuda.shared.array(SCANNED, value)
        ended = cuda.shared.array(SCANNED, np.uint32)
        thread = U32(cuda.threadIdx.x)
        tile = offset(cuda.blockIdx.x * tiles_each)
        last = offset(min(tile + tiles_each, tiles))
        carry = value(0)
        while tile < last:
            first = offset(tile * TILE)
            tile = offset(tile + 1)
            following = offset(min(tile * TILE, nnz))
            entries = U32(following - first)
            j = thread
            while j < entries:
                k = offset(first + j)
                products[j] = data[k] * x[cols[k]]
                row_of[j] = rows[k]
                j = U32(j + THREADS)
            if thread == 0:
                row_of[entries] = rows[following] if following < nnz else index(-1)
            cuda.syncthreads()

            j = U32(min(U32(thread * ITEMS), entries))
            end = U32(min(U32(j + ITEMS), entries))
            row = begun = row_of[j]
            has_ended = U32(0)
            head = value(0)
            total = carry if thread == 0 else value(0)
            while j < end:
                total += products[j]
                j = U32(j + ONE)
                following_row = row_of[j]
                if following_row != row:
                    if has_ended == 0:
                        head = total
                        has_ended = ONE
                    elif adds:
                        y[row] += total
                    else:
                        y[row] = total
                    total = value(0)
                    row = following_row

            last_sums = scan(total, has_ended, sums, ended)
            if has_ended:
                if thread > 0:
                    head += sums[U32(last_sums + thread - ONE)]
                if adds:
                    y[begun] += head
                else:
                    y[begun] = head
            carry = sums[U32(last_sums + LAST_THREAD)]
        if thread == 0:
            carries[cuda.blockIdx.x] = carry

    return coo_segments


def segment_launches(
    name: str, rows: NDArray[Any], cols: NDArray[Any], data: NDArray[Any], *, adds: bool
) -> list[Launch]:
    """Upload entries ordered by row; return the launches that write, or add to, every row that has any.

    `name` is that of the format, for messages; `adds` says whether y holds something that the products are
    added to.
    """
    arrays = upload(name, rows, cols, data)
    parts = Parts(len(data))
    if not parts.count:
        return []
    ends = np.minimum(parts.ends * TILE, parts.work)
    is_open = np.zeros(parts.count, dtype=bool)
    is_open[:-1] = rows[ends[:-1] - 1] == rows[ends[:-1]]
    carries = scratch(parts.count, data.dtype)
    kernel = _segments(data.dtype.type, rows.dtype.type, parts.offset, adds)
    launch = Launch(kernel, parts.count, (*arrays, carries, *parts.sizes), data.dtype)
    return [launch, *carry_launches(carries, np.where(is_open, rows[ends - 1], -1), adds=True)]


def _bind(matrix: COO, variant: str, threads: int) -> DeviceProduct:
    is_empty = np.ones(matrix.shape[0], dtype=bool)
    is_empty[matrix.rows] = False
    empty = np.flatnonzero(is_empty).astype(matrix.rows.dtype)
    launches = []
    if len(empty):
        arguments = (*upload(matrix.name, empty), np.int64(len(empty)))
        kernel = _zeros(matrix.data.dtype.type)
        launches = [Launch(kernel, blocks_of(len(empty)), arguments, matrix.data.dtype)]
    nnz = matrix.nnz
    entries = matrix.rows[:nnz], matrix.cols[:nnz], matrix.data[:nnz]
    return DeviceProduct([*launches, *segment_launches(matrix.name, *entries, adds=False)])


KERNELS.register("coo")(FormatKernels(("segmented",), only_variant, _bind))
