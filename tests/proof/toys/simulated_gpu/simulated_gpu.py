"""A GPU of another maker, for which the simulator of numba-cuda stands in (``NUMBA_ENABLE_CUDASIM=1``)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numba

from sparsecast.devices import DEVICES
from sparsecast.devices.gpu.gpu_device import GPUDevice
from sparsecast.devices.target import Target
from sparsecast.errors import DeviceError
from sparsecast.machines.data_sheet import GPU
from sparsecast.machines.machine import Machine, detect
from sparsecast.matrices.suites import SuiteMatrix, varied_benchmark

DESCRIPTION = GPU("simulated GPU", 1, 1, 32, 128, 1 << 30, 1 << 12, 1, 1)


@dataclass(frozen=True)
class SimulatedGPU(GPUDevice):
    name: ClassVar[str] = "simulated"
    is_numbered: ClassVar[bool] = False

    def require_library(self) -> None:
        if not numba.config.ENABLE_CUDASIM:
            raise DeviceError("device 'simulated': expected the simulator; set NUMBA_ENABLE_CUDASIM=1")

    def describe(self, index: int | None = None) -> Machine:
        self.require_library()
        return replace(detect(), device=self.name, gpu=DESCRIPTION)

    def array_sizes(self, machine: Machine, threads: int) -> list[int]:
        return [1 << 8, 1 << 10]

    def most_entries(self, machine: Machine) -> float:
        return 256  # one product of the simulator takes a Python thread for each thread of the GPU

    def suites(self, target: Target, machine: Machine) -> tuple[list[SuiteMatrix], list[SuiteMatrix]]:
        varied = [varied_benchmark(8 + 2 * k, 1 + k % 4, "uniform", 0.5) for k in range(12)]
        return [replace(matrix, formats=("ell",)) for matrix in varied], []


DEVICES.register("simulated")(SimulatedGPU())
