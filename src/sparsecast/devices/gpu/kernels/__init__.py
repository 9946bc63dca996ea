"""Kernels of GPUs, one file per format, written for Numba's module ``numba.cuda``."""

from __future__ import annotations

from sparsecast.devices.binding import FormatKernels
from sparsecast.system.registry import Registry

#: The kernels by the name of their format, of which some have none.
KERNELS: Registry[FormatKernels] = Registry("GPU kernel for format", "sparsecast.devices.gpu.kernels")
