"""ELL on GPUs: a thread a row, as in Bell and Garland (2009) and both papers on GPUs.

The columns of the padded arrays are stored one after the other here, so that neighbouring threads read
neighbouring entries; `upload_columns` turns the format's rows into them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparsecast.devices.binding import FormatKernels, only_variant
from sparsecast.devices.gpu.kernels import KERNELS
from sparsecast.devices.gpu.launching import (
    WARP,
    DeviceProduct,
    Kernel,
    Launch,
    blocks_of,
    cuda,
    made_once,
    offset_type,
    upload,
)
from sparsecast.formats.ell import ELL
from sparsecast.formats.hyb import HYB

#: Rows turned into columns at a time: their part of both arrays stays in the nearest caches.
_PANEL = 1024


@made_once
def _columns(value: type, offset: type) -> Kernel:
    def ell_columns(indices, data, pitch, fours, stored, rows, x, y):
        i = cuda.grid(1)
        if i < rows:
            total = value(0)
            k = offset(i)
            # Four entries on their way at once: where the step is constant, the compiler does so by itself.
            while k < fours:
                k1 = offset(k + pitch)
                k2 = offset(k1 + pitch)
                k3 = offset(k2 + pitch)
                j, j1, j2, j3 = indices[k], indices[k1], indices[k2], indices[k3]
                total += data[k] * x[j]
                total += data[k1] * x[j1]
                total += data[k2] * x[j2]
                total += data[k3] * x[j3]
                k = offset(k3 + pitch)
            while k < stored:
                total += data[k] * x[indices[k]]
                k = offset(k + pitch)
            y[i] = total

    return ell_columns


def column_launch(matrix: ELL | HYB) -> Launch:
    """Upload padded arrays column by column; return the launch that computes every row of them.

    A column is padded to whole warps, so that each begins where a warp's access may.
    """
    rows, width = matrix.data.shape
    pitch = WARP * blocks_of(rows, WARP)
    arrays = upload(matrix.name, _turned(matrix.indices, pitch), _turned(matrix.data, pitch))
    offset = offset_type(pitch * (width + 1))
    kernel = _columns(matrix.data.dtype.type, offset)
    sizes = offset(pitch), offset(pitch * (width - width % 4)), offset(pitch * width)
    arguments = (*arrays, *sizes, np.int64(rows))
    return Launch(kernel, blocks_of(rows), arguments, matrix.data.dtype)


def _turned(array: NDArray[np.generic], pitch: int) -> NDArray[np.generic]:
    rows, width = array.shape
    turned = np.zeros((width, pitch), dtype=array.dtype)
    for first in range(0, rows, _PANEL):
        turned[:, first : min(first + _PANEL, rows)] = array[first : first + _PANEL].T
    return turned.reshape(-1)


def _bind(matrix: ELL, variant: str, threads: int) -> DeviceProduct:
    return DeviceProduct([column_launch(matrix)] if matrix.shape[0] else [])


KERNELS.register("ell")(FormatKernels(("columns",), only_variant, _bind))
