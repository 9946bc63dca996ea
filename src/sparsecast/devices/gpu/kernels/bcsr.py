"""BCSR on GPUs: a thread for each value of a few blocks, so that a row of blocks is read as it lies.

A group of threads takes a row of blocks, as many blocks at a time as go into a warp, and steps on by as
many. So each thread stays at one place within its blocks: it multiplies by one of their columns of x and adds
to one of their rows. At the end the threads of a row meet in shared memory.
"""

from __future__ import annotations

import numpy as np

from sparsecast.devices.binding import FormatKernels, only_variant
from sparsecast.devices.gpu.kernels import KERNELS
from sparsecast.devices.gpu.launching import (
    WARP,
    DeviceProduct,
    Kernel,
    Launch,
    blocks_of,
    cuda,
    made_once,
    offset_type,
    upload,
)
from sparsecast.formats.bcsr import BCSR

U32 = np.uint32

#: Threads of a block, at most: groups need not be warps, and of more threads a smaller part is left over.
_THREADS = 256


def _groups(group: int) -> int:
    return max(1, _THREADS // group)


@made_once
def _block_rows(r: int, c: int, at_once: int, value: type, index: type, offset: type) -> Kernel:
    groups = _groups(r * c * at_once)
    threads = groups * r * c * at_once
    height, width, size, group = U32(r), U32(c), U32(r * c), U32(r * c * at_once)

    def bcsr_block_rows(starts, columns, data, block_rows, rows, cols, x, y):
        totals = cuda.shared.array(threads, value)
        thread = U32(cuda.threadIdx.x)
        group_here = U32(thread // group)
        lane = U32(thread % group)
        place = np.int32(lane % size)
        column = np.int32(lane % width)
        i = cuda.blockIdx.x * groups + np.int32(group_here)
        total = value(0)
        # In a matrix narrower than its blocks, the columns beyond it hold padding only.
        if i < block_rows and column < cols:
            k = offset(starts[i] + np.int32(lane // size))
            end = offset(starts[i + 1])
            while k < end:
                total += data[offset(offset(k * r * c) + place)] * x[index(columns[k] + column)]
                k = offset(k + at_once)
        totals[thread] = total
        cuda.syncthreads()
        row = i * r + np.int32(lane)
        if lane < height and row < rows:
            total = value(0)
            for block in range(at_once):
                for each in range(c):
                    total += totals[U32(U32(group_here * group + block * size) + U32(lane * width + each))]
            y[row] = total

    return bcsr_block_rows


def _bind(matrix: BCSR, variant: str, threads: int) -> DeviceProduct:
    (rows, cols), dtype = matrix.shape, matrix.data.dtype
    if rows == 0:
        return DeviceProduct()
    r, c = matrix.block
    block_rows = len(matrix.starts) - 1
    # A group takes as many blocks at once as go into a warp, or a mean row of blocks.
    at_once = max(1, min(WARP // (r * c), -(-len(matrix.columns) // max(block_rows, 1))))
    group = r * c * at_once
    arrays = upload(matrix.name, matrix.starts, matrix.columns, matrix.data)
    types = dtype.type, matrix.columns.dtype.type, offset_type(len(matrix.data))
    kernel = _block_rows(r, c, at_once, *types)
    arguments = (*arrays, np.int64(block_rows), np.int64(rows), np.int64(cols))
    blocks = blocks_of(block_rows, _groups(group))
    return DeviceProduct([Launch(kernel, blocks, arguments, dtype, threads=_groups(group) * group)])


KERNELS.register("bcsr")(FormatKernels(("blocks",), only_variant, _bind))
