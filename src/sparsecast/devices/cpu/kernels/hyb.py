"""HYB on processors: each thread does the ELL part of its rows, then their overflow."""

from __future__ import annotations

import numpy as np

from sparsecast.devices.binding import FormatKernels, only_variant
from sparsecast.devices.cpu.kernels import KERNELS
from sparsecast.devices.cpu.kernels.ell import padded_rows
from sparsecast.formats.hyb import HYB
from sparsecast.operators.block_operator import Product
from sparsecast.system.integers import first_from, unsigned
from sparsecast.system.jit import inner, njit
from sparsecast.system.numba_pool import each_part, share
from sparsecast.system.parallel import balanced_parts


@inner
def _part(part, indices, data, width, rows, cols, overflow, x, y, starts):
    first, last = starts[part], starts[part + 1]
    padded_rows(indices, data, width, x, y, first, last)
    end = np.uint64(len(rows))
    k = first_from(rows, first, np.uint64(0), end)
    while k < end and rows[k] < last:
        row = rows[k]
        total = data.dtype.type(0)
        while k < end and rows[k] == row:
            total += overflow[k] * x[cols[k]]
            k += np.uint64(1)
        y[row] += total


@njit(nogil=True, cache=True)
def _product(indices, data, width, rows, cols, overflow, x, y, starts, pool):
    each_part(_part, (indices, data, width, rows, cols, overflow, x, y, starts), pool)


def _bind(matrix: HYB, variant: str, threads: int) -> Product:
    n_rows, width = matrix.data.shape
    # Work before each row: the ELL entries above it and the overflow entries above it.
    before = np.arange(n_rows + 1, dtype=np.int64)
    work = width * before + np.searchsorted(matrix.overflow_rows, before)
    starts = balanced_parts(work, threads).astype(np.uint64)
    arrays = (
        unsigned(matrix.indices).reshape(-1),
        matrix.data.reshape(-1),
        np.uint64(width),
        unsigned(matrix.overflow_rows),
        unsigned(matrix.overflow_cols),
        matrix.overflow_data,
    )
    return share(_product, arrays, starts)


KERNELS.register("hyb")(FormatKernels(("rows",), only_variant, _bind))
