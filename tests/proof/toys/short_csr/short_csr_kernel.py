"""The kernel of the format for processors."""

from __future__ import annotations

import numba
import numpy as np
from short_csr import ShortCSR

from sparsecast.devices.binding import FormatKernels, only_variant
from sparsecast.devices.cpu.kernels import KERNELS
from sparsecast.operators.block_operator import Product
from sparsecast.system.integers import unsigned
from sparsecast.system.numba_pool import each_part, share
from sparsecast.system.parallel import balanced_parts

ONE = np.uint32(1)


@numba.njit(nogil=True, cache=True)
def _part(part, indptr, indices, data, x, y, starts):
    for i in range(starts[part], starts[part + 1]):
        total = data.dtype.type(0)
        for k in range(indptr[i], indptr[i + ONE]):
            total += data[k] * x[indices[k]]
        y[i] = total


@numba.njit(nogil=True, cache=True)
def _product(indptr, indices, data, x, y, starts, pool):
    each_part(_part, (indptr, indices, data, x, y, starts), pool)


def _bind(matrix: ShortCSR, variant: str, threads: int) -> Product:
    indptr = unsigned(matrix.indptr)
    starts = balanced_parts(indptr, threads).astype(indptr.dtype)
    return share(_product, (indptr, matrix.indices, matrix.data), starts)


KERNELS.register("short_csr")(FormatKernels(("rows",), only_variant, _bind))
