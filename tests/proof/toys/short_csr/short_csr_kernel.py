"""The kernel of the format for processors."""

from __future__ import annotations

import numba
import numpy as np
from short_csr import ShortCSR

from sparsecast.devices.cpu.kernels import KERNELS
from sparsecast.devices.format_kernels import FormatKernels, only_variant
from sparsecast.integers import unsigned
from sparsecast.operators import Product
from sparsecast.parallel import balanced_parts, share

ONE = np.uint32(1)


@numba.njit(nogil=True, cache=True)
def _rows(indptr, indices, data, x, y, first, last):
    for i in range(first, last):
        total = data.dtype.type(0)
        for k in range(indptr[i], indptr[i + ONE]):
            total += data[k] * x[indices[k]]
        y[i] = total


@numba.njit(nogil=True, cache=True)
def _serial(indptr, indices, data, x, y, starts):
    for part in range(len(starts) - 1):
        _rows(indptr, indices, data, x, y, starts[part], starts[part + 1])


@numba.njit(nogil=True, cache=True, parallel=True)
def _parallel(indptr, indices, data, x, y, starts):
    for part in numba.prange(len(starts) - 1):
        _rows(indptr, indices, data, x, y, starts[part], starts[part + 1])


def _bind(matrix: ShortCSR, variant: str, threads: int) -> Product:
    indptr = unsigned(matrix.indptr)
    starts = balanced_parts(indptr, threads).astype(indptr.dtype)
    return share(_serial, _parallel, (indptr, matrix.indices, matrix.data), starts)


KERNELS.register("short_csr")(FormatKernels(("rows",), only_variant, _bind))
