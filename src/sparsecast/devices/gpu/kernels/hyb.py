"""HYB on GPUs: the ELL part as in ELL, then the overflow as in COO, added to it."""

from __future__ import annotations

from sparsecast.devices.binding import FormatKernels, only_variant
from sparsecast.devices.gpu.kernels import KERNELS
from sparsecast.devices.gpu.kernels.coo import segment_launches
from sparsecast.devices.gpu.kernels.ell import column_launch
from sparsecast.devices.gpu.launching import DeviceProduct
from sparsecast.formats.hyb import HYB, LEAST_ROWS_ON_GPUS


def _bind(matrix: HYB, variant: str, threads: int) -> DeviceProduct:
    if matrix.shape[0] == 0:
        return DeviceProduct()
    overflow = matrix.overflow_rows, matrix.overflow_cols, matrix.overflow_data
    return DeviceProduct([column_launch(matrix), *segment_launches(matrix.name, *overflow, adds=True)])


#: Version 2 divides the rows elsewhere: only a column that many rows reach is in the ELL part.
KERNELS.register("hyb")(
    FormatKernels(("columns",), only_variant, _bind, layout={"least_rows": LEAST_ROWS_ON_GPUS}, version=2)
)
