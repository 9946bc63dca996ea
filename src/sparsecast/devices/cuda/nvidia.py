"""A GPU of NVIDIA as a device."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from sparsecast.devices.cuda.driver import detect_gpu, driver_errors, numba_cuda
from sparsecast.devices.gpu.gpu_device import GPUDevice
from sparsecast.errors import DeviceError
from sparsecast.machines.machine import Machine, detect

if TYPE_CHECKING:
    from sparsecast.measuring.energy import Meter


@dataclass(frozen=True)
class NvidiaGPU(GPUDevice):
    """The current CUDA device."""

    name: ClassVar[str] = "cuda"

    def describe(self, index: int | None = None) -> Machine:
        return replace(detect(), device=self.name, gpu=detect_gpu(index))

    def require_library(self) -> None:
        numba_cuda()

    def meter(self) -> Meter | None:
        from sparsecast.devices.cuda.meter import NvmlMeter

        try:
            return NvmlMeter()
        except DeviceError:
            return None  # energy is then not measured, which a Record says by None

    def errors(self) -> AbstractContextManager[None]:
        return driver_errors()
