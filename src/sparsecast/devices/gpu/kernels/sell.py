"""SELL-C-sigma on GPUs: a thread a row and a warp a chunk.

A chunk has 32 rows here, four of the format's, stored in the order of their columns, so that a warp reads 32
neighbouring entries at a time; `_widen` makes such chunks. The rows stay as the format sorted them, whose
windows are multiples of 32 rows or one row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.devices.binding import FormatKernels, only_variant
from sparsecast.devices.gpu.kernels import KERNELS
from sparsecast.devices.gpu.launching import (
    WARP,
    DeviceProduct,
    Kernel,
    Stored,
    base_of,
    cuda,
    made_once,
    offset_type,
    one_launch,
    term_of,
    upload,
)
from sparsecast.formats.sell import CHUNK_ROWS, SELL
from sparsecast.system.jit import njit
from sparsecast.system.parallel import balanced_parts, in_parts

_U64 = np.uint64
_ONE, _NARROW, _WIDE = _U64(1), _U64(CHUNK_ROWS), _U64(WARP)


@made_once
def _chunks(stored: Stored, in_order: bool) -> Kernel:
    value, offset, base_of_row, term = stored.value, stored.offset, base_of(stored), term_of(stored)
    is_alike = stored.is_alike

    def sell_chunks(starts, indices, data, bases, lengths, permutation, rows, x, y):
        i = cuda.grid(1)
        if i < rows:
            chunk = i >> 5
            base = base_of_row(bases, i)
            k = offset(starts[chunk] + (i & 31))
            # Padding that has the value of all entries must not be added.
            end = offset(k + WARP * np.int32(lengths[i])) if is_alike else offset(starts[chunk + 1])
            total = value(0)
            while k < end:
                total += term(data, indices, base, x, k)
                k = offset(k + WARP)
            if in_order:
                y[i] = total
            else:
                y[permutation[i]] = total

    return sell_chunks


@njit(nogil=True, cache=True)
def _widen(chunk_starts, stored, repeats, wide_starts, wide_stored, first, last):
    """Write the wide chunks first to last; what a row lacks repeats its last entry, or is 0."""
    chunks = _U64(len(chunk_starts) - 1)
    for wide in range(first, last):
        for lane in range(_WIDE):
            k, end = wide_starts[wide] + lane, wide_starts[wide + _ONE]
            filler = stored.dtype.type(0)
            narrow = (wide * _WIDE + lane) // _NARROW
            if narrow < chunks:
                for j in range(chunk_starts[narrow] + lane % _NARROW, chunk_starts[narrow + _ONE], _NARROW):
                    wide_stored[k] = stored[j]
                    if repeats:
                        filler = stored[j]
                    k += _WIDE
            while k < end:
                wide_stored[k] = filler
                k += _WIDE


def _bind(matrix: SELL, variant: str, threads: int) -> DeviceProduct:
    rows = matrix.shape[0]
    # A chunk of 32 rows is as wide as the widest of its narrow ones.
    widths = np.diff(matrix.chunk_starts) // CHUNK_ROWS
    widths = np.pad(widths, (0, -len(widths) % (WARP // CHUNK_ROWS)))
    widest = widths.reshape(-1, WARP // CHUNK_ROWS).max(axis=1, initial=0)
    starts = np.zeros(len(widest) + 1, dtype=np.int64)
    np.cumsum(WARP * widest, out=starts[1:])

    def widened(stored: NDArray[Any], repeats: bool) -> NDArray[Any]:
        wide = np.empty(int(starts[-1]), dtype=stored.dtype)
        in_parts(_widen, (matrix.chunk_starts, stored, repeats, starts, wide), balanced_parts(starts))
        return wide

    data = matrix.data if matrix.values == "one" else widened(matrix.data, False)
    stored = Stored.of(matrix, offset_type(int(starts[-1])))
    arrays = starts.astype(stored.offset), widened(matrix.indices, True), data, matrix.bases, matrix.lengths
    uploaded = upload(matrix.name, *arrays, matrix.permutation)
    kernel = _chunks(stored, len(matrix.permutation) == 0)
    return one_launch(kernel, rows, (*uploaded, np.int64(rows)), matrix.dtype)


KERNELS.register("sell")(FormatKernels(("chunks",), only_variant, _bind, reads_narrow=True))
