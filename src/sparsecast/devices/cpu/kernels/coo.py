"""COO on processors: entries split evenly among the threads, whatever the rows."""

from __future__ import annotations

import numpy as np

from sparsecast.devices.binding import FormatKernels, only_variant
from sparsecast.devices.cpu.kernels import KERNELS
from sparsecast.formats.coo import COO
from sparsecast.operators.block_operator import Product
from sparsecast.system.integers import unsigned
from sparsecast.system.jit import inner, njit
from sparsecast.system.numba_pool import each_part, share
from sparsecast.system.parallel import equal_parts


@inner
def _part(part, rows, cols, data, carry, x, y, starts):
    """Add up the entries of one part; each row belongs to the part that holds its first entry.

    What a part adds to a row that began in an earlier part goes to carry[part]; rows without entries are
    set to zero by the part that holds the entry after them.
    """
    first, last = starts[part], starts[part + 1]
    zero = data.dtype.type(0)
    carry[part] = zero
    row = np.int64(rows[first])
    before = np.int64(rows[first - 1]) if first > 0 else np.int64(-1)
    continued = row == before
    for empty in range(before + 1, row):
        y[empty] = zero
    total = zero
    for k in range(first, last):
        if np.int64(rows[k]) != row:
            if continued:
                carry[part] = total
                continued = False
            else:
                y[row] = total
            for empty in range(row + 1, np.int64(rows[k])):
                y[empty] = zero
            row = np.int64(rows[k])
            total = zero
        total += data[k] * x[cols[k]]
    if continued:
        carry[part] = total
    else:
        y[row] = total
    if last == len(rows):
        for empty in range(row + 1, len(y)):
            y[empty] = zero


@njit(nogil=True, cache=True)
def _product(rows, cols, data, carry, x, y, starts, pool):
    each_part(_part, (rows, cols, data, carry, x, y, starts), pool)
    for part in range(1, len(carry)):
        y[rows[starts[part]]] += carry[part]


def _bind(matrix: COO, variant: str, threads: int) -> Product:
    starts = equal_parts(matrix.nnz, min(threads, matrix.nnz)).astype(np.uint64)
    arrays = unsigned(matrix.rows), unsigned(matrix.cols), matrix.data
    return share(_product, arrays, starts, scratch=np.zeros(len(starts) - 1, dtype=matrix.dtype))


KERNELS.register("coo")(FormatKernels(("segmented",), only_variant, _bind, sums_by_threads=True))
