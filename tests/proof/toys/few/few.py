"""The processor as a device that is calibrated in seconds: few matrices, small, in two formats."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from sparsecast.devices import DEVICES
from sparsecast.devices.binding import FormatKernels
from sparsecast.devices.cpu.kernels import KERNELS
from sparsecast.devices.cpu.processor import Processor
from sparsecast.devices.target import Target
from sparsecast.machines.machine import Machine
from sparsecast.matrices.suites import SuiteMatrix, gallery_benchmark, varied_benchmark


class TwoFormats:
    def names(self) -> list[str]:
        return ["csr", "short_csr"]

    def get(self, name: str) -> FormatKernels:
        return KERNELS.get(name)


@dataclass(frozen=True)
class FewMatrices(Processor):
    name: ClassVar[str] = "few"
    kernels: ClassVar[Any] = TwoFormats()

    def describe(self, index: int | None = None) -> Machine:
        return replace(super().describe(index), device=self.name)

    def core_speed(self, threads: int) -> None:
        return None  # no Record is one of slow cores, however busy the machine is

    def references(self, machine: Machine, threads: int) -> None:
        return None

    def suites(self, target: Target, machine: Machine) -> tuple[list[SuiteMatrix], list[SuiteMatrix]]:
        varied = [varied_benchmark(500 * (k + 1), 4 + k, "uniform", 0.1) for k in range(18)]
        return [*varied, *(gallery_benchmark(f"poisson2d?n={n}") for n in (20, 40))], []


DEVICES.register("few")(FewMatrices())
