"""HYB on CUDA devices: the ELL part as in ELL, then the overflow as in COO, added to it."""

from __future__ import annotations

from sparsecast.formats.hyb import HYB
from sparsecast.kernels import KERNELS
from sparsecast.kernels.cuda.coo import segment_launches
from sparsecast.kernels.cuda.ell import column_launch
from sparsecast.kernels.cuda.launching import DeviceProduct
from sparsecast.kernels.format_kernels import FormatKernels, only_variant


def _bind(matrix: HYB, variant: str, threads: int) -> DeviceProduct:
    if matrix.shape[0] == 0:
        return DeviceProduct()
    overflow = matrix.overflow_rows, matrix.overflow_cols, matrix.overflow_data
    return DeviceProduct([column_launch(matrix), *segment_launches(matrix.name, *overflow, adds=True)])


KERNELS["cuda"].register("hyb")(FormatKernels(("columns",), only_variant, _bind))
