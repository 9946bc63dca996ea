"""JAD on processors: a block of rows through all its diagonals, four of them at a time.

The sums of a block stay in the nearest cache, where a sweep over whole diagonals would stream y once for each
of them. Neighbouring rows read neighbouring columns in the same diagonal, so x is found in a near cache even
where the rows are long: that is what this format gains on.
"""

from __future__ import annotations

import numpy as np

from sparsecast.devices.binding import FormatKernels, only_variant
from sparsecast.devices.cpu.kernels import KERNELS
from sparsecast.formats.jad import JAD, sorted_lengths
from sparsecast.operators.block_operator import Product
from sparsecast.system.integers import unsigned
from sparsecast.system.jit import inner, njit
from sparsecast.system.numba_pool import each_part, share
from sparsecast.system.parallel import balanced_parts

U64 = np.uint64
ZERO, ONE, TWO, THREE, FOUR = U64(0), U64(1), U64(2), U64(3), U64(4)

#: Rows of a block, whose sums take 16 KB of the nearest cache. With 256 rows it was up to a tenth slower:
#: runs of a diagonal are short for the prefetcher; with 4,096 the lines of x leave the nearest cache.
BLOCK_ROWS = U64(2048)

#: Where a diagonal has no more rows of a block than this, the rest of those rows is done row by row.
FEW_ROWS = U64(8)


@njit(nogil=True, inline="always")
def _add_four(starts, indices, data, x, sums, diagonal, row, present):
    """Add four diagonals of which the last one has `present` rows of the block, and the others at least."""
    k0, k1, k2, k3 = (
        starts[diagonal] + row,
        starts[diagonal + ONE] + row,
        starts[diagonal + TWO] + row,
        starts[diagonal + THREE] + row,
    )
    for i in range(present):
        sums[i] += (data[k0 + i] * x[indices[k0 + i]] + data[k1 + i] * x[indices[k1 + i]]) + (
            data[k2 + i] * x[indices[k2 + i]] + data[k3 + i] * x[indices[k3 + i]]
        )


@njit(nogil=True, inline="always")
def _add_one(starts, indices, data, x, sums, diagonal, row, first, last):
    """Add one diagonal for the block's rows first to last, of which it may have fewer."""
    k = starts[diagonal] + row
    length = starts[diagonal + ONE] - starts[diagonal]
    for i in range(first, min(last, max(length, row) - row)):
        sums[i] += data[k + i] * x[indices[k + i]]


@njit(nogil=True, inline="always")
def _add_rest(starts, indices, data, x, sums, diagonal, row, present):
    """Add all diagonals from this one on, which has `present` rows of the block, row by row."""
    zero = data.dtype.type(0)
    end = U64(len(starts) - 1)
    for i in range(present):
        place, j = row + i, diagonal
        sum0, sum1 = zero, zero
        while j + ONE < end and starts[j + TWO] - starts[j + ONE] > place:
            k0, k1 = starts[j] + place, starts[j + ONE] + place
            sum0 += data[k0] * x[indices[k0]]
            sum1 += data[k1] * x[indices[k1]]
            j += TWO
        if j < end and starts[j + ONE] - starts[j] > place:
            k0 = starts[j] + place
            sum0 += data[k0] * x[indices[k0]]
        sums[i] += sum0 + sum1


@njit(nogil=True, inline="always")
def _block(starts, indices, data, x, sums, row, rows):
    """Sum up `rows` stored rows from `row` on."""
    end = U64(len(starts) - 1)
    diagonal = ZERO
    while diagonal < end:
        length = starts[diagonal + ONE] - starts[diagonal]
        if length <= row:
            return
        if length <= row + FEW_ROWS:
            _add_rest(starts, indices, data, x, sums, diagonal, row, min(length - row, rows))
            return
        fourth = ZERO
        if diagonal + FOUR <= end:
            fourth = starts[diagonal + FOUR] - starts[diagonal + THREE]
        if fourth <= row + FEW_ROWS:
            _add_one(starts, indices, data, x, sums, diagonal, row, ZERO, rows)
            diagonal += ONE
            continue
        present = min(fourth - row, rows)
        _add_four(starts, indices, data, x, sums, diagonal, row, present)
        if present < rows:
            _add_one(starts, indices, data, x, sums, diagonal, row, present, rows)
            _add_one(starts, indices, data, x, sums, diagonal + ONE, row, present, rows)
            _add_one(starts, indices, data, x, sums, diagonal + TWO, row, present, rows)
        diagonal += FOUR


@inner
def _part(part, diagonal_starts, indices, data, permutation, x, y, starts):
    sums = np.empty(BLOCK_ROWS, dtype=data.dtype)
    row, last = starts[part], starts[part + 1]
    while row < last:
        rows = min(BLOCK_ROWS, last - row)
        sums[:rows] = 0
        _block(diagonal_starts, indices, data, x, sums, row, rows)
        for i in range(rows):
            y[permutation[row + i]] = sums[i]
        row += rows


@njit(nogil=True, cache=True)
def _product(diagonal_starts, indices, data, permutation, x, y, starts, pool):
    each_part(_part, (diagonal_starts, indices, data, permutation, x, y, starts), pool)


def _bind(matrix: JAD, variant: str, threads: int) -> Product:
    rows = matrix.shape[0]
    starts = np.array([0, rows], dtype=np.uint64)
    if threads > 1:
        # A row costs as much as one more entry: there are many short rows at the end.
        work = np.zeros(rows + 1, dtype=np.int64)
        np.cumsum(sorted_lengths(matrix.diagonal_starts, rows) + 1, out=work[1:])
        starts = balanced_parts(work, threads).astype(np.uint64)
    arrays = (
        unsigned(matrix.diagonal_starts),
        unsigned(matrix.indices),
        matrix.data,
        unsigned(matrix.permutation),
    )
    return share(_product, arrays, starts)


KERNELS.register("jad")(FormatKernels(("blocks",), only_variant, _bind, sums_by_threads=True))
