"""CSR on GPUs: a thread a row, 2 to 32 threads a row, or equal work for each block of threads.

Sources: CSR-scalar and CSR-vector of Bell and Garland (2009); with 32 threads a row the latter is the kernel
of Guo et al. (2014), with 16 that of Wang et al. (2017). The balanced variant cuts the merge of row ends and
entries into equal pieces, as Merrill and Garland (2016) do, so that neither a huge row nor a million empty
ones keep one block busy while the others wait.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.devices.format_kernels import FormatKernels
from sparsecast.devices.gpu.kernels import KERNELS
from sparsecast.devices.gpu.lanes import lane_sum
from sparsecast.devices.gpu.launching import (
    THREADS,
    DeviceProduct,
    Kernel,
    Launch,
    cuda,
    device_function,
    made_once,
    offset_type,
    one_launch,
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
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats.csr import CSR
from sparsecast.machines.machine import Machine

#: Threads a row of the variants before the balanced one.
LANES = (1, 2, 4, 8, 16, 32)

#: A row in which each of its threads takes more entries than this holds its block up, and maybe the device.
LONGEST_WALK = 64

VARIANTS = ("scalar", *(f"vector{lanes}" for lanes in LANES[1:]), "balanced")


@made_once
def _scalar(value: type, offset: type) -> Kernel:
    def csr_scalar(indptr, indices, data, rows, x, y):  # type: ignore[no-untyped-def]
        i = cuda.grid(1)
        if i < rows:
            total = value(0)
            k = offset(indptr[i])
            end = offset(indptr[i + 1])
            while k < end:
                total += data[k] * x[indices[k]]
                k = offset(k + 1)
            y[i] = total

    return csr_scalar


@made_once
def _vector(lanes: int, value: type, offset: type) -> Kernel:
    shift, last_lane = lanes.bit_length() - 1, lanes - 1

    def csr_vector(indptr, indices, data, rows, x, y):  # type: ignore[no-untyped-def]
        i = cuda.grid(1) >> shift
        lane = cuda.threadIdx.x & last_lane
        total = value(0)
        if i < rows:
            k = offset(indptr[i] + lane)
            end = offset(indptr[i + 1])
            while k < end:
                total += data[k] * x[indices[k]]
                k = offset(k + lanes)
        total = lane_sum(total, lanes)
        if lane == 0 and i < rows:
            y[i] = total

    return csr_vector


@device_function
def row_ends_before(place, row_ends, rows, entries):  # type: ignore[no-untyped-def]
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
def _balanced(value: type, offset: type) -> Kernel:
    def csr_balanced(  # type: ignore[no-untyped-def]
        indptr, indices, data, tile_rows, carries, tiles, tiles_each, work, x, y
    ):
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
                products[j] = data[k] * x[indices[k]]
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
    """Choose the least power of two that reaches the mean row length, or, where a row is huge, balanced."""
    mean = blocks.nnz / np.maximum(blocks.rows, 1)
    variant = np.minimum(np.searchsorted(LANES, mean), len(LANES) - 1)
    is_huge = blocks.row_length_max > LONGEST_WALK * np.array(LANES)[variant]
    return np.where(is_huge, VARIANTS.index("balanced"), variant)


def _bind(matrix: CSR, variant: str, threads: int) -> DeviceProduct:
    rows, nnz, dtype = matrix.shape[0], matrix.nnz, matrix.data.dtype
    arrays = upload(matrix.name, matrix.indptr, matrix.indices[:nnz], matrix.data[:nnz])
    if variant == "balanced":
        return DeviceProduct(_balanced_launches(matrix, arrays) if rows else ())
    lanes = LANES[VARIANTS.index(variant)]
    types = dtype.type, offset_type(nnz)
    kernel = _scalar(*types) if lanes == 1 else _vector(lanes, *types)
    return one_launch(kernel, rows * lanes, (*arrays, np.int64(rows)), dtype)


def _balanced_launches(matrix: CSR, arrays: list[Any]) -> list[Launch]:
    indptr, rows, dtype = matrix.indptr, matrix.shape[0], matrix.data.dtype
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
    kernel = _balanced(dtype.type, parts.offset)
    launch = Launch(kernel, parts.count, (*arrays, *placed, carries, *parts.sizes), dtype)
    return [launch, *carry_launches(carries, np.where(is_open, last_row, -1))]


KERNELS.register("csr")(FormatKernels(VARIANTS, _choose, _bind))
