"""JAD on GPUs: a thread a stored row, as in Li and Saad (2013), the kernel of Wang et al. (2017).

Rows are sorted by length, so the rows of a warp end together, and neighbouring threads read neighbouring
entries of each diagonal. Their lengths, which follow from the diagonals, are given to the kernel: a loop that
looked for the diagonal's end in each step could not have several entries on their way at once.
"""

from __future__ import annotations

import numpy as np

from sparsecast.devices.binding import FormatKernels, only_variant
from sparsecast.devices.gpu.kernels import KERNELS
from sparsecast.devices.gpu.launching import (
    DeviceProduct,
    Kernel,
    cuda,
    made_once,
    offset_type,
    one_launch,
    upload,
)
from sparsecast.formats.jad import JAD, sorted_lengths


@made_once
def _diagonals(value: type, offset: type) -> Kernel:
    def jad_diagonals(starts, indices, data, permutation, lengths, rows, x, y):
        i = cuda.grid(1)
        if i < rows:
            total = value(0)
            length, j = lengths[i], np.int32(0)
            while j < length:
                k = offset(starts[j] + i)
                total += data[k] * x[indices[k]]
                j = np.int32(j + 1)
            y[permutation[i]] = total

    return jad_diagonals


def _bind(matrix: JAD, variant: str, threads: int) -> DeviceProduct:
    rows, dtype = matrix.shape[0], matrix.data.dtype
    offset = offset_type(matrix.nnz)
    starts = matrix.diagonal_starts.astype(offset)
    lengths = sorted_lengths(matrix.diagonal_starts, rows).astype(np.int32)
    arrays = upload(matrix.name, starts, matrix.indices, matrix.data, matrix.permutation, lengths)
    return one_launch(_diagonals(dtype.type, offset), rows, (*arrays, np.int64(rows)), dtype)


KERNELS.register("jad")(FormatKernels(("diagonals",), only_variant, _bind))
