"""Numba kernels for processors, one file a format."""

from __future__ import annotations

from sparsecast.devices.format_kernels import FormatKernels
from sparsecast.system.registry import Registry

#: The kernels of every format, by its name.
KERNELS: Registry[FormatKernels] = Registry("CPU kernel for format", "sparsecast.devices.cpu.kernels")
