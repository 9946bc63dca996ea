"""Symmetric CSR on processors: every entry below the diagonal is read once and multiplied twice.

Mirrored products with rows of other parts are collected in buffers, as `devices.cpu.mirrored` says.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparsecast.devices.binding import FormatKernels
from sparsecast.devices.cpu.kernels import KERNELS
from sparsecast.devices.cpu.mirrored import buffers, collect, kind_of, mirrored
from sparsecast.devices.cpu.narrow import data_argument, value_at
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats.symmetric_csr import SymmetricCSR
from sparsecast.machines.machine import Machine
from sparsecast.operators.block_operator import Product
from sparsecast.system.integers import unsigned
from sparsecast.system.jit import inner, njit
from sparsecast.system.numba_pool import each_part, share
from sparsecast.system.parallel import balanced_parts

#: Below this mean row length of the whole matrix, four entries at a time cost more to set up than they save,
#: as they do where rows are mispredicted (`benchmarks/run.py symmetric-loops` of commit 92e4a5d6).
SHORT_ROW = 12.0

ZERO, ONE, TWO, THREE, FOUR = (np.uint64(number) for number in range(5))
NO_LIMIT = np.uint64(2**64 - 1)


@inner
def _one_by_one(indices, data, kind, x, xi, total, target, shift, k, end, limit):
    """Multiply a row's entries before column `limit`; return the sum and the entry after them."""
    while k < end and np.uint64(indices[k]) < limit:
        j = np.uint64(indices[k])
        total += value_at(data, k) * x[j]
        target[j + shift] += mirrored(value_at(data, k), kind) * xi
        k += ONE
    return total, k


@inner
def _four_at_once(indices, data, kind, x, xi, total, target, shift, k, end, limit):
    """As `_one_by_one`; the columns of a row differ, so four results may be written after four were read."""
    zero = x.dtype.type(0)
    sum0, sum1, sum2, sum3 = total, zero, zero, zero
    while k + FOUR <= end and np.uint64(indices[k + THREE]) < limit:
        j0, j1 = np.uint64(indices[k]), np.uint64(indices[k + ONE])
        j2, j3 = np.uint64(indices[k + TWO]), np.uint64(indices[k + THREE])
        a0, a1 = value_at(data, k), value_at(data, k + ONE)
        a2, a3 = value_at(data, k + TWO), value_at(data, k + THREE)
        sum0 += a0 * x[j0]
        sum1 += a1 * x[j1]
        sum2 += a2 * x[j2]
        sum3 += a3 * x[j3]
        y0, y1 = target[j0 + shift] + mirrored(a0, kind) * xi, target[j1 + shift] + mirrored(a1, kind) * xi
        y2, y3 = target[j2 + shift] + mirrored(a2, kind) * xi, target[j3 + shift] + mirrored(a3, kind) * xi
        target[j0 + shift], target[j1 + shift] = y0, y1
        target[j2 + shift], target[j3 + shift] = y2, y3
        k += FOUR
    total = (sum0 + sum1) + (sum2 + sum3)
    return _one_by_one(indices, data, kind, x, xi, total, target, shift, k, end, limit)


@inner
def _entries(indices, data, step, kind, x, xi, total, target, shift, k, end, limit):
    # The length of a tuple is known to the compiler, which leaves one of the two.
    if len(step) == 1:
        return _one_by_one(indices, data, kind, x, xi, total, target, shift, k, end, limit)
    return _four_at_once(indices, data, kind, x, xi, total, target, shift, k, end, limit)


@inner
def _part(part, starts, indices, data, diagonal, step, kind, lowest, shifts, scratch, x, y, parts):
    first, last = parts[part], parts[part + 1]
    buffer, shift = scratch, shifts[part]
    for j in range(lowest[part], first):
        buffer[j + shift] = 0
    k = np.uint64(starts[first])
    for i in range(first, last):
        end = np.uint64(starts[i + ONE])
        xi = x[i]
        total = diagonal[i] * xi
        total, k = _entries(indices, data, step, kind, x, xi, total, buffer, shift, k, end, first)
        total, k = _entries(indices, data, step, kind, x, xi, total, y, ZERO, k, end, NO_LIMIT)
        # No row before this one has added to y[i], which is therefore set.
        y[i] = total


@njit(nogil=True, cache=True)
def _product(starts, indices, data, diagonal, step, kind, lowest, shifts, scratch, x, y, parts, pool):
    each_part(
        _part, (starts, indices, data, diagonal, step, kind, lowest, shifts, scratch, x, y, parts), pool
    )
    each_part(collect, (lowest, shifts, scratch, y, parts), pool)


_STEPS = {"single": 1, "unrolled": 4}


def _choose(blocks: RowBlocks, machine: Machine, dtype: str) -> NDArray[np.int64]:
    short = blocks.nnz < SHORT_ROW * blocks.rows
    return np.where(short | blocks.is_mispredicted, 0, 1)


def _bind(matrix: SymmetricCSR, variant: str, threads: int) -> Product:
    # A row costs about as much as an entry: many have none below the diagonal.
    parts = balanced_parts(matrix.starts + np.arange(len(matrix.starts)), threads).astype(np.uint64)
    lowest, shifts, scratch = buffers(matrix, matrix.indices, parts, parts)
    data = data_argument(matrix.data, matrix.values)
    arrays = (unsigned(matrix.starts), unsigned(matrix.indices), data, matrix.diagonal)
    variants = (0,) * _STEPS[variant], kind_of(matrix)
    return share(_product, (*arrays, *variants, lowest, shifts), parts, scratch)


KERNELS.register("symmetric_csr")(
    FormatKernels(tuple(_STEPS), _choose, _bind, reads_narrow=True, sums_by_threads=True)
)
