"""Kernels: for each device, one file a format."""

from __future__ import annotations

from sparsecast.kernels.format_kernels import FormatKernels
from sparsecast.records import DTYPES
from sparsecast.registry import Registry

#: For each device, the kernels of every format, by the format's name.
KERNELS: dict[str, Registry[FormatKernels]] = {
    "cpu": Registry(
        "CPU kernel for format", "sparsecast.kernels.cpu", helpers=("gathers", "multivector", "vector_code")
    ),
    "cuda": Registry(
        "CUDA kernel for format",
        "sparsecast.kernels.cuda",
        helpers=("lanes", "launching", "operator", "tiles"),
    ),
}

#: For each device, the types of values that its kernels take.
KERNEL_DTYPES: dict[str, tuple[str, ...]] = {"cpu": DTYPES, "cuda": ("float64", "float32")}
