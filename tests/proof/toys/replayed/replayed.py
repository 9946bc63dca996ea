"""A device that replays the Records of a profile, which ``REPLAYED_PROFILE`` names.

The kernels for processors do its products; each product moves a simulated clock on by its stored time.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from sparsecast.devices import DEVICES
from sparsecast.devices.binding import Bound, FormatKernels, bind
from sparsecast.devices.cpu.kernels import KERNELS
from sparsecast.devices.device import Device
from sparsecast.devices.target import Target
from sparsecast.errors import DeviceError, FormatError
from sparsecast.formats.storage_format import StorageFormat
from sparsecast.machines.machine import Machine
from sparsecast.machines.profile import Profile
from sparsecast.matrices.problem import Problem
from sparsecast.matrices.suites import SuiteMatrix
from sparsecast.operators.block_operator import Product
from sparsecast.records import Candidate, Record

FORMATS = ("coo", "csr", "ell", "sell")

#: Matrices with more entries are not among the benchmark matrices.
MOST_ENTRIES = 100_000
BYTES_PER_S = 1e10


@cache
def stored() -> Profile:
    if "REPLAYED_PROFILE" not in os.environ:
        raise DeviceError("REPLAYED_PROFILE is not set: expected the path of a profile; set it")
    return Profile.load(Path(os.environ["REPLAYED_PROFILE"]))


@cache
def records() -> dict[tuple[Any, ...], Record]:
    """The Records by what a product shows of itself: format, types, threads and the size of the matrix."""
    found = {}
    for record in stored().records:
        structure = stored().structure(record)
        found[key(record.candidate, (structure.rows, structure.cols), record.nnz)] = record
    return found


def key(candidate: Candidate, shape: tuple[int, int], nnz: int) -> tuple[Any, ...]:
    return candidate.format, candidate.dtype, candidate.threads, shape, nnz


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


class ReplayedKernels:
    """The kernels for processors, each with the stored time of its product."""

    def names(self) -> list[str]:
        return list(FORMATS)

    def get(self, name: str) -> FormatKernels:
        kernels = KERNELS.get(name)

        def bound(matrix: StorageFormat, variant: str, threads: int) -> Product:
            product = kernels.bind(matrix, variant, threads)
            asked = (name, matrix.dtype.name, threads, matrix.shape, matrix.nnz)

            def timed(x: Any, out: Any) -> None:
                product(x, out)
                CLOCK.pass_by(_record(asked).time_s)

            return timed

        return replace(kernels, bind=bound, bind_multivector=None)


def _record(asked: tuple[Any, ...]) -> Record:
    if asked not in records():
        raise FormatError(f"no record of {asked}: expected one in {stored().name}; ask for another product")
    return records()[asked]


@dataclass(frozen=True)
class ReplayedDevice(Device):
    name: ClassVar[str] = "replayed"
    dtypes: ClassVar[tuple[str, ...]] = ("float64", "float32")
    kernels: ClassVar[Any] = ReplayedKernels()
    shares_host: ClassVar[bool] = False

    def describe(self, index: int | None = None) -> Machine:
        return replace(stored().machine, device=self.name)

    def threads(self, machine: Machine, asked: int | None) -> int:
        return machine.checked_threads(asked)

    def clock(self) -> SimulatedClock:
        return CLOCK

    def array_sizes(self, machine: Machine, threads: int) -> list[int]:
        return [1 << 20, 1 << 24]

    def bandwidth_calls(self, size_bytes: int, threads: int) -> dict[str, Callable[[], None]]:
        kinds = ("read", "to device", "from device")
        return {kind: lambda: CLOCK.pass_by(size_bytes / BYTES_PER_S) for kind in kinds}

    def suites(self, target: Target, machine: Machine) -> tuple[list[SuiteMatrix], list[SuiteMatrix]]:
        formats: dict[tuple[str, str], list[str]] = {}
        for record in stored().select(dtype=target.dtype):
            if record.candidate.format in FORMATS and record.nnz <= MOST_ENTRIES:
                formats.setdefault((record.matrix, record.suite), []).append(record.candidate.format)
        required = [
            SuiteMatrix(Problem.named(matrix), suite, tuple(names))
            for (matrix, suite), names in formats.items()
        ]
        return required, []

    def bind(self, A: Any, candidate: Candidate) -> tuple[Bound, float]:
        return bind(A, candidate), _record(key(candidate, A.shape, A.nnz)).convert_s

    def warm_up(self, candidate: Candidate) -> None:
        DEVICES.get("cpu").warm_up(replace(candidate, device="cpu"))


DEVICES.register("replayed")(ReplayedDevice())
