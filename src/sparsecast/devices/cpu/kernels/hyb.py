"""HYB on processors: each thread does the ELL part of its rows, then their overflow."""

from __future__ import annotations

import numba
import numpy as np

from sparsecast.devices.cpu.kernels import KERNELS
from sparsecast.devices.cpu.kernels.ell import padded_rows
from sparsecast.devices.format_kernels import FormatKernels, only_variant
from sparsecast.formats.hyb import HYB
from sparsecast.integers import unsigned
from sparsecast.operators import Product
from sparsecast.parallel import balanced_parts, share


@numba.njit(nogil=True, cache=True)
def _overflow(rows, cols, data, x, y, first, last):  # type: ignore[no-untyped-def]
    k = first
    while k < last:
        row = rows[k]
        total = data.dtype.type(0)
        while k < last and rows[k] == row:
            total += data[k] * x[cols[k]]
            k += np.uint64(1)
        y[row] += total


@numba.njit(nogil=True, cache=True)
def _part(indices, data, width, rows, cols, overflow, overflow_starts, x, y, starts, part):  # type: ignore[no-untyped-def]
    padded_rows(indices, data, width, x, y, starts[part], starts[part + 1])
    _overflow(rows, cols, overflow, x, y, overflow_starts[part], overflow_starts[part + 1])


@numba.njit(nogil=True, cache=True)
def _serial(indices, data, width, rows, cols, overflow, overflow_starts, x, y, starts):  # type: ignore[no-untyped-def]
    for part in range(len(starts) - 1):
        _part(indices, data, width, rows, cols, overflow, overflow_starts, x, y, starts, part)


@numba.njit(nogil=True, cache=True, parallel=True)
def _parallel(indices, data, width, rows, cols, overflow, overflow_starts, x, y, starts):  # type: ignore[no-untyped-def]
    for part in numba.prange(len(starts) - 1):
        _part(indices, data, width, rows, cols, overflow, overflow_starts, x, y, starts, part)


def _bind(matrix: HYB, variant: str, threads: int) -> Product:
    if matrix.nnz == 0:
        return lambda x, out: out.fill(0)
    n_rows, width = matrix.data.shape
    # Work before each row: the ELL entries above it and the overflow entries above it.
    overflow_before = np.searchsorted(matrix.overflow_rows, np.arange(n_rows + 1))
    work = width * np.arange(n_rows + 1, dtype=np.int64) + overflow_before
    parts = balanced_parts(work, threads)
    arrays = (
        unsigned(matrix.indices).reshape(-1),
        matrix.data.reshape(-1),
        np.uint64(width),
        unsigned(matrix.overflow_rows),
        unsigned(matrix.overflow_cols),
        matrix.overflow_data,
        overflow_before[parts].astype(np.uint64),
    )
    return share(_serial, _parallel, arrays, parts.astype(np.uint64))


KERNELS.register("hyb")(FormatKernels(("rows",), only_variant, _bind))
