"""numba-cuda kernels, one file a format."""

from __future__ import annotations

from sparsecast.devices.format_kernels import FormatKernels
from sparsecast.system.registry import Registry

#: The kernels by the name of their format, of which some have none.
KERNELS: Registry[FormatKernels] = Registry("CUDA kernel for format", "sparsecast.devices.cuda.kernels")
