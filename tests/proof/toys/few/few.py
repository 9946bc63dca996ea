"""A device with a clock of its own: the kernels for processors do its products, in two formats.

Each product moves a simulated clock on, by the bytes that it streams and a little by its entries. A
calibration takes seconds, and every time of it is known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from sparsecast.devices import DEVICES
from sparsecast.devices.binding import FormatKernels
from sparsecast.devices.cpu.kernels import KERNELS
from sparsecast.devices.device import Device
from sparsecast.devices.target import Target
from sparsecast.formats.storage_format import StorageFormat
from sparsecast.machines.machine import Machine, detect
from sparsecast.matrices.suites import SuiteMatrix, gallery_benchmark, varied_benchmark
from sparsecast.operators.block_operator import Product

BYTES_PER_S = 1e10


class SimulatedClock:
    """Time that passes in products only."""

    least_calls = 0
    now_s = 0.0

    def pass_by(self, seconds: float) -> None:
        self.now_s += seconds

    def seconds(self, call: Callable[[], object], times: int) -> float:
        before = self.now_s
        call()
        return times * (self.now_s - before)  # every call takes the same


CLOCK = SimulatedClock()


class TwoFormats:
    """The kernels for processors, each with the time of its product."""

    def names(self) -> list[str]:
        return ["csr", "short_csr"]

    def get(self, name: str) -> FormatKernels:
        kernels = KERNELS.get(name)

        def bind(matrix: StorageFormat, variant: str, threads: int) -> Product:
            product = kernels.bind(matrix, variant, threads)
            time_s = (1 + matrix.nnz % 7 / 50) * matrix.traffic() / BYTES_PER_S

            def timed(x: Any, out: Any) -> None:
                product(x, out)
                CLOCK.pass_by(time_s)

            return timed

        return replace(kernels, bind=bind, bind_multivector=None)


@dataclass(frozen=True)
class FewMatrices(Device):
    name: ClassVar[str] = "few"
    dtypes: ClassVar[tuple[str, ...]] = ("float64", "float32")
    kernels: ClassVar[Any] = TwoFormats()
    shares_host: ClassVar[bool] = False

    def describe(self, index: int | None = None) -> Machine:
        return replace(detect(), device=self.name)

    def threads(self, machine: Machine, requested: int | None) -> int:
        return machine.checked_threads(requested)

    def clock(self) -> SimulatedClock:
        return CLOCK

    def array_sizes(self, machine: Machine, threads: int) -> list[int]:
        return [1 << 20, 1 << 24]

    def bandwidth_calls(self, size_bytes: int, threads: int) -> dict[str, Callable[[], None]]:
        kinds = ("read", "to device", "from device")
        return {kind: lambda: CLOCK.pass_by(size_bytes / BYTES_PER_S) for kind in kinds}

    def suites(self, target: Target, machine: Machine) -> tuple[list[SuiteMatrix], list[SuiteMatrix]]:
        varied = [varied_benchmark(500 * (k + 1), 4 + k, "uniform", 0.1) for k in range(18)]
        return [*varied, *(gallery_benchmark(f"poisson2d?n={n}") for n in (20, 40))], []


DEVICES.register("few")(FewMatrices())
