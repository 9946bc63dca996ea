"""CSR on processors: five row loops, chosen by the lengths of the rows.

After memory, the end of the row loop costs most. If the lengths of the rows follow no pattern, the processor
mispredicts it every time, for up to two thirds of the product's time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.devices.binding import FormatKernels
from sparsecast.devices.cpu.kernels import KERNELS
from sparsecast.devices.cpu.multivector import panels, row_of_blocks
from sparsecast.devices.cpu.narrow import end_of_group, from_base, narrow_arguments, value_at
from sparsecast.devices.cpu.vector_code import gathers_win, vector_row
from sparsecast.features.narrow_storage import GROUP_ROWS
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats.csr import CSR
from sparsecast.machines.machine import Machine
from sparsecast.operators.block_operator import Product
from sparsecast.system.integers import unsigned
from sparsecast.system.jit import inner, njit
from sparsecast.system.numba_pool import each_part, share
from sparsecast.system.parallel import balanced_parts

#: Below this mean length, four accumulators cost more to set up and add than they save.
SHORT_ROW = 3.5

#: From this mean length on, vectors of products win over single ones where rows are not mispredicted.
VECTOR_ROW = 8.0

#: Mean lengths of mispredicted rows for which eight masked entries at the end win over one masked vector, and
#: mispredicted ends of a matrix that a processor remembers from one product to the next.
LEAST_WIDE_ROW, MOST_WIDE_ROW, REMEMBERED_ROWS = 2.5, 20.0, 25_000

U32 = np.uint32
ONE, TWO, THREE, FOUR = U32(1), U32(2), U32(3), U32(4)
ROWS = U32(GROUP_ROWS)

#: Most entries that masked vectors read behind a row.
MOST_BEHIND = U32(8)


@inner
def _plain_rows(indptr, indices, data, x, y, first, last):
    k = indptr[first]
    for i in range(first, last):
        end = indptr[i + ONE]
        total = x.dtype.type(0)
        while k < end:
            total += value_at(data, k) * x[indices[k]]
            k += ONE
        y[i] = total


@inner
def _unrolled_rows(indptr, indices, data, x, y, first, last):
    zero = x.dtype.type(0)
    k = indptr[first]
    for i in range(first, last):
        end = indptr[i + ONE]
        # Four sums that do not wait for each other hide the latency of the addition.
        sum0, sum1, sum2, sum3 = zero, zero, zero, zero
        while k + FOUR <= end:
            sum0 += value_at(data, k) * x[indices[k]]
            sum1 += value_at(data, k + ONE) * x[indices[k + ONE]]
            sum2 += value_at(data, k + TWO) * x[indices[k + TWO]]
            sum3 += value_at(data, k + THREE) * x[indices[k + THREE]]
            k += FOUR
        while k < end:
            sum0 += value_at(data, k) * x[indices[k]]
            k += ONE
        y[i] = (sum0 + sum1) + (sum2 + sum3)


@inner
def _masked_rows(indptr, indices, data, x, y, first, last):
    zero = x.dtype.type(0)
    final = indptr[last] - ONE
    k = indptr[first]
    for i in range(first, last):
        end = indptr[i + ONE]
        sum0, sum1, sum2, sum3 = zero, zero, zero, zero
        while k + FOUR <= end:
            sum0 += value_at(data, k) * x[indices[k]]
            sum1 += value_at(data, k + ONE) * x[indices[k + ONE]]
            sum2 += value_at(data, k + TWO) * x[indices[k + TWO]]
            sum3 += value_at(data, k + THREE) * x[indices[k + THREE]]
            k += FOUR
        # The last three entries are always read and selected afterwards: a loop would be mispredicted, and
        # entries that belong to the next row are at hand anyway. `final` keeps the last row within bounds,
        # and within its group, whose base the next one does not share.
        k0, k1, k2 = min(k, final), min(k + ONE, final), min(k + TWO, final)
        term0, term1 = value_at(data, k0) * x[indices[k0]], value_at(data, k1) * x[indices[k1]]
        term2 = value_at(data, k2) * x[indices[k2]]
        sum0 += term0 if k < end else zero
        sum1 += term1 if k + ONE < end else zero
        sum2 += term2 if k + TWO < end else zero
        k = end
        y[i] = (sum0 + sum1) + (sum2 + sum3)


@inner
def _vector_rows(indptr, indices, data, gathers, wide, x, y, first, last):
    # What the last rows would read behind them may be no entry, or in a group with another base.
    safe, final = last, np.uint64(indptr[last] - ONE)
    while safe > first and indptr[safe] + MOST_BEHIND > indptr[last]:
        safe -= ONE
    for i in range(first, safe):
        y[i] = vector_row(data, indices, x, gathers, wide, indptr[i], indptr[i + ONE], ())
    for i in range(safe, last):
        y[i] = vector_row(data, indices, x, gathers, wide, indptr[i], indptr[i + ONE], final)


@inner
def _rows(indptr, indices, data, loop, x, y, first, last):
    # The length of a tuple is known to the compiler, which leaves one of the six.
    if indptr[first] == indptr[last]:
        y[first:last] = 0
    elif len(loop) == 0:
        _plain_rows(indptr, indices, data, x, y, first, last)
    elif len(loop) == 1:
        _unrolled_rows(indptr, indices, data, x, y, first, last)
    elif len(loop) == 2:
        _vector_rows(indptr, indices, data, (), (0,), x, y, first, last)
    elif len(loop) == 3:
        _vector_rows(indptr, indices, data, (0,), (), x, y, first, last)
    elif len(loop) == 4:
        _vector_rows(indptr, indices, data, (), (), x, y, first, last)
    else:
        _masked_rows(indptr, indices, data, x, y, first, last)


@inner
def part_of_rows(part, indptr, indices, data, bases, loop, x, y, starts):
    """Do the rows from starts[part] on; the length of `loop` is the number of the variant."""
    first, last = starts[part], starts[part + 1]
    while first < last:
        end = end_of_group(bases, first, last, ROWS)
        _rows(indptr, indices, data, loop, from_base(x, bases, first, ROWS), y, first, end)
        first = end


@njit(nogil=True, cache=True)
def _product(indptr, indices, data, bases, loop, x, y, starts, pool):
    each_part(part_of_rows, (indptr, indices, data, bases, loop, x, y, starts), pool)


_PLAIN, _UNROLLED, _MASKED, _GATHERED, _VECTORS = range(5)
#: Names of the row loops.
VARIANTS = ("plain", "unrolled", "masked", "gathered", "vectors")


def _choose(blocks: RowBlocks, machine: Machine, dtype: str) -> NDArray[np.int64]:
    nnz, rows, is_mispredicted = blocks.nnz, blocks.rows, blocks.is_mispredicted
    chosen = np.where(nnz < SHORT_ROW * rows, _PLAIN, _UNROLLED)
    if np.dtype(dtype).kind == "c":
        return np.where(is_mispredicted, _MASKED, chosen)
    variant = _GATHERED if gathers_win(machine) else _VECTORS
    chosen = np.where(is_mispredicted | (nnz >= VECTOR_ROW * rows), variant, chosen)
    is_wide = is_mispredicted & (nnz >= LEAST_WIDE_ROW * rows) & (nnz < MOST_WIDE_ROW * rows)
    is_wide &= (blocks.matrix.row_lengths.mispredicted or 0) > REMEMBERED_ROWS
    return np.where(is_wide, _MASKED, chosen)


def _bind(matrix: CSR, variant: str, threads: int) -> Product:
    arrays, starts = _shared(matrix, threads)
    is_complex = variant == "masked" and matrix.dtype.kind == "c"  # which vectors here are not
    loop = len(VARIANTS) if is_complex else VARIANTS.index(variant)
    return share(_product, (*arrays, (0,) * loop), starts)


def _shared(matrix: CSR, threads: int) -> tuple[tuple[Any, ...], NDArray[Any]]:
    indptr = unsigned(matrix.indptr)
    starts = balanced_parts(indptr, threads).astype(indptr.dtype)
    data, bases = narrow_arguments(matrix.data, matrix.values, matrix.bases)
    return (indptr, unsigned(matrix.indices), data, bases), starts


@inner
def _several_part(part, indptr, indices, data, bases, height, width, lanes, X, Y, starts):
    first, last = starts[part], starts[part + 1]
    while first < last:
        end, moved = end_of_group(bases, first, last, ROWS), from_base(X, bases, first, ROWS)
        for i in range(first, end):
            row_of_blocks(indices, data, moved, Y, (height, width, lanes), indptr[i], indptr[i + ONE], ONE, i)
        first = end


@njit(nogil=True, cache=True)
def _several(indptr, indices, data, bases, height, width, lanes, X, Y, starts, pool):
    each_part(_several_part, (indptr, indices, data, bases, height, width, lanes, X, Y, starts), pool)


def _bind_multivector(matrix: CSR, threads: int) -> Product:
    arrays, starts = _shared(matrix, threads)
    return panels(_several, arrays, starts)


KERNELS.register("csr")(
    FormatKernels(
        VARIANTS,
        _choose,
        _bind,
        _bind_multivector,
        real_only=("gathered", "vectors"),  # a complex value is more than a gather reads
        reads_narrow=True,
        version=3,
    )
)
