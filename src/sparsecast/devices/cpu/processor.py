"""The processors of a machine as a device."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from sparsecast.devices.binding import FormatKernels, bind, tiny_matrix
from sparsecast.devices.cpu.kernels import KERNELS
from sparsecast.devices.device import Device
from sparsecast.errors import MeterError
from sparsecast.machines.machine import Machine, detect
from sparsecast.measuring.timing import Call, HostClock
from sparsecast.records import DTYPES, Candidate
from sparsecast.system.registry import Registry

if TYPE_CHECKING:
    from sparsecast.measuring.core_speed import CoreSpeed
    from sparsecast.measuring.energy import Meter
    from sparsecast.measuring.references import ReferenceMonitor

#: Sizes of arrays of bandwidth measurements, each half of the one before, and the greatest of them: it
#: exceeds the share of a virtual machine in the largest caches.
_HALVINGS, _MOST_BEYOND_BYTES = 8, 512 << 20

#: Size beyond the caches of most processors, for systems that do not report theirs.
_BEYOND_MOST_CACHES_BYTES = 128 << 20


@dataclass(frozen=True)
class Processor(Device):
    """The processors of a machine, with warm caches."""

    name: ClassVar[str] = "cpu"
    dtypes: ClassVar[tuple[str, ...]] = DTYPES
    kernels: ClassVar[Registry[FormatKernels]] = KERNELS
    compiles_apart: ClassVar[bool] = True
    may_read_energy: ClassVar[bool] = True

    def describe(self, index: int | None = None) -> Machine:
        return detect()

    def threads(self, machine: Machine, requested: int | None) -> int:
        return machine.checked_threads(requested)

    def threads_text(self, threads: int) -> str:
        return f"{threads} thread{'s' if threads > 1 else ''}"

    def clock(self) -> HostClock:
        return HostClock()

    def meter(self) -> Meter | None:
        """Return the first readable meter of METERS, None if there is none."""
        from sparsecast.measuring.meters import processor_meter

        with suppress(MeterError):  # energy is then not measured, which a Record says by None
            return processor_meter()
        return None

    def unmetered(self) -> str:
        from sparsecast.measuring.meters import processor_meter

        try:
            processor_meter()
        except MeterError as error:
            return str(error)
        return ""

    def frequency_hz(self) -> float | None:
        from sparsecast.measuring.core_speed import Frequencies

        return Frequencies().mean_hz()

    def references(self, machine: Machine, threads: int) -> ReferenceMonitor:
        """Return the monitor of reads and gathers in the second cache, the third, and memory."""
        from sparsecast.measuring.references import ReferenceMonitor, reference_bytes, references

        sizes = reference_bytes(*machine.shared_cache_bytes(threads))
        return ReferenceMonitor(references(sizes, threads), cores=self.core_speed(threads))

    def core_speed(self, threads: int) -> CoreSpeed:
        from sparsecast.measuring.core_speed import core_speed

        return core_speed(threads)

    def array_sizes(self, machine: Machine, threads: int) -> list[int]:
        """Return half of each cache of so many threads together, twice the last one, and halves of that.

        So they show how much of the last cache this machine gives. At most 512 MiB.
        """
        caches = [cache.bytes * -(-threads // cache.shared_by) for cache in machine.caches]
        beyond = min(2 * caches[-1] if caches else _BEYOND_MOST_CACHES_BYTES, _MOST_BEYOND_BYTES)
        least = 2 * max(caches[:-1], default=0)
        halves = {beyond >> halving for halving in range(_HALVINGS) if beyond >> halving > least and caches}
        return sorted({beyond, *halves, *(min(size // 2, beyond) for size in caches)})

    def bandwidth_calls(self, size_bytes: int, threads: int) -> dict[str, Call]:
        from sparsecast.measuring.references import memory_read

        return {"read": memory_read(size_bytes, threads)}

    def warm_up(self, candidate: Candidate) -> None:
        """Compile the kernels of a candidate by calling its product, or load them from the cache."""
        tiny, vectors = tiny_matrix(candidate), candidate.vectors
        X, out = (np.ones((size, vectors), candidate.dtype) for size in tiny.shape[::-1])
        product = bind(tiny, candidate).of(vectors)
        product(X.ravel(), out.ravel()) if vectors == 1 else product(X, out)
