"""ELL on processors: rows of one length, so no row loop's end is ever mispredicted."""

from __future__ import annotations

import numpy as np

from sparsecast.devices.binding import FormatKernels, only_variant
from sparsecast.devices.cpu.kernels import KERNELS
from sparsecast.formats.ell import ELL
from sparsecast.operators.block_operator import Product
from sparsecast.system.integers import unsigned
from sparsecast.system.jit import inner, njit
from sparsecast.system.numba_pool import each_part, share
from sparsecast.system.parallel import equal_parts

U64 = np.uint64
ONE, TWO, THREE, FOUR = U64(1), U64(2), U64(3), U64(4)


@inner
def padded_rows(indices, data, width, x, y, first, last):
    """Compute rows `first` to `last` of two padded arrays of this width, both flattened."""
    zero = data.dtype.type(0)
    k = first * width
    for i in range(first, last):
        end = k + width
        sum0, sum1, sum2, sum3 = zero, zero, zero, zero
        while k + FOUR <= end:
            sum0 += data[k] * x[indices[k]]
            sum1 += data[k + ONE] * x[indices[k + ONE]]
            sum2 += data[k + TWO] * x[indices[k + TWO]]
            sum3 += data[k + THREE] * x[indices[k + THREE]]
            k += FOUR
        while k < end:
            sum0 += data[k] * x[indices[k]]
            k += ONE
        y[i] = (sum0 + sum1) + (sum2 + sum3)


@inner
def _part(part, indices, data, width, x, y, starts):
    padded_rows(indices, data, width, x, y, starts[part], starts[part + 1])


@njit(nogil=True, cache=True)
def _product(indices, data, width, x, y, starts, pool):
    each_part(_part, (indices, data, width, x, y, starts), pool)


def _bind(matrix: ELL, variant: str, threads: int) -> Product:
    rows, width = matrix.data.shape
    starts = equal_parts(rows, threads).astype(np.uint64)
    arrays = (unsigned(matrix.indices).reshape(-1), matrix.data.reshape(-1), np.uint64(width))
    return share(_product, arrays, starts)


KERNELS.register("ell")(FormatKernels(("rows",), only_variant, _bind))
