"""Device: the interface of everything that computes products; measures its bandwidths."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sparsecast.devices.binding import Bound, FormatKernels, bind, tiny_matrix
from sparsecast.formats.libraries import LIBRARIES
from sparsecast.machines.machine import Machine
from sparsecast.measuring.timing import Call, Clock, Effort, Lingering, measure
from sparsecast.operators.block_operator import BlockOperator
from sparsecast.records import Bandwidth, Candidate, Record
from sparsecast.system.registry import Registry
from sparsecast.system.version import VERSION

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from sparsecast.devices.target import Target
    from sparsecast.matrices.suites import SuiteMatrix
    from sparsecast.measuring.core_speed import CoreSpeed
    from sparsecast.measuring.energy import Meter
    from sparsecast.measuring.references import ReferenceMonitor


@dataclass(frozen=True)
class Device(ABC):
    """A device that computes products: a member of DEVICES.

    Its methods import the library of the device when they need it; forecasts need none. Methods that are not
    abstract suit a device that computes in the memory of the host.
    """

    name: ClassVar[str]  # as in a Candidate, and as the folder
    kind: ClassVar[str] = "processor"  # the user's word for it, or "GPU"
    dtypes: ClassVar[tuple[str, ...]]  # of the values of its kernels
    #: By the name of the format; a missing file is a missing kernel.
    kernels: ClassVar[Registry[FormatKernels]]
    is_numbered: ClassVar[bool] = False  # whether a machine may have several, each with a number
    #: Whether other processes can compile its kernels into a cache on disk.
    compiles_apart: ClassVar[bool] = False
    #: Whether `meter` may return a meter, which takes seconds per Candidate.
    may_read_energy: ClassVar[bool] = False
    #: Whether it computes where SciPy does, so that the two are sampled in turn.
    shares_host: ClassVar[bool] = True

    @property
    def regime(self) -> str:
        """``"warm"`` or ``"cold"``, as in a Record."""
        return "warm"

    @abstractmethod
    def describe(self, index: int | None = None) -> Machine:
        """Return this machine with this device, and compute on this device from now on.

        For numbered devices, `index` is the number, by default that of the current device. Raises a
        DeviceError if it cannot be found or used.
        """

    def require_library(self) -> None:
        """Raise a DeviceError if the library or the driver of the device is missing."""
        return

    @abstractmethod
    def threads(self, machine: Machine, requested: int | None) -> int:
        """Return the threads of a Candidate for the requested number; refuse impossible numbers."""

    def threads_text(self, threads: int) -> str:
        """Return the threads of a product in words; empty for a device without a choice of threads."""
        return ""

    @abstractmethod
    def clock(self) -> Clock:
        """Return the clock that times its products."""

    def meter(self) -> Meter | None:
        """Return its energy meter, None if it cannot be read."""
        return None

    def unmetered(self) -> str:
        """Return why its meter cannot be read, in one line with the remedy; empty otherwise."""
        return ""

    def frequency_hz(self) -> float | None:
        """Return the present mean frequency of its cores; None if unknown."""
        return None

    def references(self, machine: Machine, threads: int) -> ReferenceMonitor | None:
        """Return the monitor of reference products on so many threads; None if there is none."""
        return None

    def core_speed(self, threads: int) -> CoreSpeed | None:
        """Return the monitor of the speed of its cores; None if there is none."""
        return None

    @abstractmethod
    def array_sizes(self, machine: Machine, threads: int) -> list[int]:
        """Return the sizes in bytes of the arrays of bandwidth measurements, in ascending order."""

    @abstractmethod
    def bandwidth_calls(self, size_bytes: int, threads: int) -> dict[str, Call]:
        """Return a callable that moves an array of this size, for each kind of Bandwidth of the device."""

    def measure_bandwidths(self, machine: Machine, threads: int) -> list[Bandwidth]:
        """Measure the bandwidths of the device on this number of threads."""
        return measure_bandwidths(self, self.array_sizes(machine, threads), threads)

    def suites(self, target: Target, machine: Machine) -> tuple[list[SuiteMatrix], list[SuiteMatrix]]:
        """Return the required and the optional benchmark matrices of a profile, in order."""
        from sparsecast.matrices.suites import OPTIONAL, usual_parts

        parts = usual_parts(machine, target.threads)
        required = [matrix for part in parts if part.order < OPTIONAL for matrix in part.matrices]
        optional = [matrix for part in parts if part.order >= OPTIONAL for matrix in part.matrices]
        return required, optional

    def most_entries(self, machine: Machine) -> float:
        """Return the non-zeros of the largest benchmark matrix, as far as the device limits them."""
        return math.inf

    def calibrated(self, chosen: Sequence[Candidate]) -> list[Candidate]:
        """Return the Candidates that a calibration measures on a matrix: by default the chosen ones."""
        return list(chosen)

    def is_current(self, record: Record, *, is_here: bool = False) -> bool:
        """Tell whether a Record is of the present version of a kernel of this device, or of a library.

        Other machines have other versions of libraries: with `is_here`, only the installed one counts.
        """
        name = record.candidate.format
        is_library = name in LIBRARIES
        is_own = (is_library or name in self.kernels.names()) and record.candidate.device == self.name
        is_any = is_library and not is_here
        return is_own and (is_any or record.kernel_version == self.kernels.get(name).version)

    def bind(self, A: csr_array[Any], candidate: Candidate) -> tuple[Bound, float]:
        """Return the bound candidate, and the seconds of its conversion from CSR."""
        start = perf_counter()
        bound = bind(A, candidate)
        took_s = perf_counter() - start
        return bound, took_s if bound.matrix.is_converted or candidate.parameters else 0.0

    def warm_up(self, candidate: Candidate) -> None:
        """Compile, or load from a cache, what `bind` and its product need."""
        bind(tiny_matrix(candidate), candidate)

    def put(self, array: np.ndarray[Any, Any]) -> Any:
        """Return a vector of the host in the form that products take."""
        return array

    def take(self, array: Any) -> np.ndarray[Any, Any]:
        """Return a vector of `put` on the host, with its present values."""
        return np.asarray(array)

    def call(self, candidate: Candidate, bound: Bound, x: Any, out: Any) -> Call:
        """Return the callable that is timed: the product with vectors of `put`."""
        product, linger_s = bound.of(candidate.vectors), bound.matrix.linger_s
        call: Call = lambda: product(x, out)  # noqa: E731
        return Lingering(call, linger_s) if linger_s and candidate.threads > 1 else call

    def operator_type(self) -> type[BlockOperator]:
        return BlockOperator

    def errors(self) -> AbstractContextManager[None]:
        """Return a context that turns errors of the device's library into our errors."""
        return nullcontext()


#: A second or two for all sizes of a device: a large array is traversed 14 times.
BANDWIDTH_EFFORT = Effort(samples=3, sample_s=0.002)


def measure_bandwidths(
    device: Device,
    sizes: Sequence[int],
    threads: int,
    effort: Effort = BANDWIDTH_EFFORT,
    clock: Clock | None = None,
) -> list[Bandwidth]:
    """Measure every kind of Bandwidth of a device, with arrays of these sizes in bytes (words of 8)."""
    clock = clock or device.clock()
    bandwidths = []
    with device.errors():
        for size in sizes:
            calls = device.bandwidth_calls(size, threads)
            for kind, timing in measure(calls, effort, clock=clock).items():
                bandwidths.append(
                    Bandwidth(
                        kind=kind,
                        device=device.name,
                        threads=threads,
                        bytes=2 * size if kind == "copy" else size,
                        time_s=timing.time_s,
                        noise=timing.noise,
                        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
                        version=VERSION,
                    )
                )
    return bandwidths
