"""Device: the interface of everything that computes products."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from sparsecast.devices.binding import Bound, bind, tiny_matrix
from sparsecast.devices.format_kernels import FormatKernels
from sparsecast.machines.machine import Machine
from sparsecast.operators.block_operator import BlockOperator
from sparsecast.records import Bandwidth, Candidate, Record
from sparsecast.system.registry import Registry

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from sparsecast.devices.target import Target
    from sparsecast.matrices.suites import SuiteMatrix
    from sparsecast.measuring.core_speed import CoreSpeed
    from sparsecast.measuring.energy import Meter
    from sparsecast.measuring.references import ReferenceMonitor
    from sparsecast.measuring.timing import Call, Clock


@dataclass(frozen=True)
class Device(ABC):
    """Something that computes products: a member of DEVICES.

    Its methods import the library of the device when they need it; forecasts need none. Where a method is
    not abstract, it does what is right for a device that computes in the memory of the host.

    Attributes
    ----------
    name : str
        As in a Candidate, and as the folder.
    kind : str
        What users call such a device: ``"processor"``, ``"GPU"``.
    dtypes : tuple of str
        Types of values that its kernels take.
    kernels : Registry of FormatKernels
        By the name of the format; a missing file is a missing kernel.
    is_numbered : bool
        Whether a machine may have several, called by numbers.
    compiles_apart : bool
        Whether other processes can compile its kernels and leave them in a cache on disk.
    may_read_energy : bool
        Whether `meter` may return one, which takes seconds a Candidate.
    shares_host : bool
        Whether it computes where SciPy does, so that the two are sampled in turn.
    regime : str
        As in a Record.
    """

    name: ClassVar[str]
    kind: ClassVar[str] = "processor"
    dtypes: ClassVar[tuple[str, ...]]
    kernels: ClassVar[Registry[FormatKernels]]
    is_numbered: ClassVar[bool] = False
    compiles_apart: ClassVar[bool] = False
    may_read_energy: ClassVar[bool] = False
    shares_host: ClassVar[bool] = True

    @property
    def regime(self) -> str:
        """``"warm"`` or ``"cold"``."""
        return "warm"

    @abstractmethod
    def describe(self, index: int | None = None) -> Machine:
        """Return this machine with this device, and compute on that from now on.

        Where devices have numbers, `index` is that of the device, by default the current one. Raises a
        DeviceError if it cannot be found or used.
        """

    def require_library(self) -> None:
        """Raise a DeviceError if the library or the driver of the device is missing: before it is used."""
        return

    @abstractmethod
    def threads(self, machine: Machine, asked: int | None) -> int:
        """Return the threads of a Candidate, for those asked for; refuse by an InputError what it has not."""

    def threads_text(self, threads: int) -> str:
        """Return in words the threads that products share; empty where none are chosen."""
        return ""

    @abstractmethod
    def clock(self) -> Clock:
        """Return what reads the time of its products."""

    def meter(self) -> Meter | None:
        """Return what counts its joules, None where nothing can be read."""
        return None

    def unmetered(self) -> str:
        """Return why a meter that is there cannot be read, in a line with the remedy; empty otherwise."""
        return ""

    def frequency_hz(self) -> float | None:
        """Return the present mean frequency of its cores; None where nothing tells it."""
        return None

    def references(self, machine: Machine, threads: int) -> ReferenceMonitor | None:
        """Return what times reference products of so many threads; None where there are none."""
        return None

    def core_speed(self, threads: int) -> CoreSpeed | None:
        """Return what tells whether so many cores run at full speed; None where nothing does."""
        return None

    @abstractmethod
    def array_sizes(self, machine: Machine, threads: int) -> list[int]:
        """Return the bytes of the arrays that bandwidths are measured with, the smallest first."""

    @abstractmethod
    def bandwidth_calls(self, size_bytes: int, threads: int) -> dict[str, Call]:
        """Return what moves an array of that size, for each kind of Bandwidth that the device has."""

    def measure_bandwidths(self, machine: Machine, threads: int) -> list[Bandwidth]:
        """Measure how fast the device moves bytes, with so many threads; see `bandwidths`."""
        from sparsecast.devices.bandwidths import measure_bandwidths

        return measure_bandwidths(self, self.array_sizes(machine, threads), threads)

    def suites(self, target: Target, machine: Machine) -> tuple[list[SuiteMatrix], list[SuiteMatrix]]:
        """Return the benchmark matrices that a profile requires, and the optional ones, in their order."""
        from sparsecast.matrices.suites import OPTIONAL, usual_parts

        parts = usual_parts(machine, target.threads)
        required = [matrix for part in parts if part.order < OPTIONAL for matrix in part.matrices]
        optional = [matrix for part in parts if part.order >= OPTIONAL for matrix in part.matrices]
        return required, optional

    def most_entries(self, machine: Machine) -> float:
        """Return the non-zeros of the largest benchmark matrix, where the device bounds them by itself."""
        return math.inf

    def calibrated(self, chosen: Sequence[Candidate]) -> list[Candidate]:
        """Return what a calibration measures of a matrix: by default what the rules chose for it."""
        return list(chosen)

    def is_current(self, record: Record) -> bool:
        """Tell whether a Record is of a kernel of this device as it is now."""
        name = record.candidate.format
        is_known = record.candidate.device == self.name and name in self.kernels.names()
        return is_known and record.kernel_version == self.kernels.get(name).version

    def bind(self, A: csr_array[Any], candidate: Candidate) -> tuple[Bound, float]:
        """Return the bound candidate, and the seconds that building it from CSR took."""
        start = perf_counter()
        bound = bind(A, candidate)
        return bound, perf_counter() - start

    def warm_up(self, candidate: Candidate) -> None:
        """Compile, or load from a cache, what `bind` and its product need."""
        bind(tiny_matrix(candidate), candidate)

    def put(self, array: np.ndarray[Any, Any]) -> Any:
        """Return a vector of the host's as products take it."""
        return array

    def take(self, array: Any) -> np.ndarray[Any, Any]:
        """Return what `put` placed, as it is now, on the host."""
        return np.asarray(array)

    def call(self, candidate: Candidate, bound: Bound, x: Any, out: Any) -> Call:
        """Return what is timed: the product with vectors that `put` placed."""
        product = bound.product
        return lambda: product(x, out)

    def operator_type(self) -> type[BlockOperator]:
        """Return the type of its operators."""
        return BlockOperator

    def errors(self) -> AbstractContextManager[None]:
        """Return a context that turns errors of the device's library into our errors of one line."""
        return nullcontext()
