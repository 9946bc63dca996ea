"""Measuring Candidates on a matrix: build, check against the oracle, time in turn, record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from time import perf_counter
from typing import Any, Protocol

import numpy as np
from scipy.sparse import csr_array

from sparsecast.errors import FormatError, InputError, MatrixSizeError
from sparsecast.kernels.binding import Bound, bind, prepared, warm_up
from sparsecast.kernels.reference import ReferenceProduct
from sparsecast.machines.gpu import driver_errors
from sparsecast.measuring.energy import Energy
from sparsecast.measuring.timing import Call, Clock, Effort, HostClock, Timing, measure
from sparsecast.records import Candidate, Record, Structure
from sparsecast.version import VERSION

#: Told which Candidate is left out, and why.
LeftOut = Callable[[Candidate, InputError], None]


@dataclass(frozen=True, slots=True)
class Subject:
    """A matrix to measure on.

    Attributes
    ----------
    matrix : csr_array
    structure : Structure
        Of `matrix`.
    name : str
    suite : str
        As in a Record.
    """

    matrix: csr_array[Any]
    structure: Structure
    name: str
    suite: str


class Bench(Protocol):
    """Where candidates are measured: it places their vectors, calls their products and reads the time.

    Attributes
    ----------
    clock : Clock
    regime : str
        As in a Record.
    """

    @property
    def clock(self) -> Clock:
        """What reads the time."""
        ...

    @property
    def regime(self) -> str:
        """``"warm"`` or ``"cold"``."""
        ...

    def bind(self, A: csr_array[Any], candidate: Candidate) -> tuple[Bound, float]:
        """Return the bound candidate, and the seconds from CSR to there."""
        ...

    def put(self, array: np.ndarray[Any, Any]) -> Any:
        """Return a vector of the host's as products take it."""
        ...

    def take(self, array: Any) -> np.ndarray[Any, Any]:
        """Return what `put` placed, as it is now, on the host."""
        ...

    def call(self, candidate: Candidate, bound: Bound, x: Any, out: Any) -> Call:
        """Return what is timed: the product with vectors that `put` placed."""
        ...

    def energy(self, call: Call) -> Energy | None:
        """Return the joules of a call, None where nothing measures them."""
        ...


class HostBench:
    """The processors of this machine, with warm caches."""

    regime = "warm"

    def __init__(self) -> None:
        self.clock = HostClock()

    def bind(self, A: csr_array[Any], candidate: Candidate) -> tuple[Bound, float]:
        """Return the bound candidate, and the seconds to build its format: 0 for CSR itself."""
        start = perf_counter()
        bound = bind(A, candidate)
        return bound, perf_counter() - start if candidate.format != "csr" else 0.0

    def put(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the vector itself."""
        return array

    def take(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the vector itself."""
        return array

    def call(self, candidate: Candidate, bound: Bound, x: Any, out: Any) -> Call:
        """Return the product with these vectors."""
        product = bound.product
        return lambda: product(x, out)

    def energy(self, call: Call) -> None:
        """Return None: nothing here counts joules."""


def bench_of(device: str, reads_energy: bool = False) -> Bench:
    """Return the bench of a device, with warm caches.

    Parameters
    ----------
    device : str
        ``"cpu"`` or ``"cuda"``.
    reads_energy : bool
        Whether energy is read where something counts it, which takes seconds a candidate.

    Raises
    ------
    DeviceError
        If the device is not there.
    """
    if device == "cpu":
        return HostBench()
    from sparsecast.benchmark.device import DeviceBench, meter_at_hand  # they ask for a device's libraries

    return DeviceBench(meter=meter_at_hand() if reads_energy else None)


@dataclass(frozen=True, slots=True)
class _Prepared:
    candidate: Candidate
    bound: Bound
    convert_s: float
    error: float


def right_hand_side(cols: int, dtype: str) -> np.ndarray[Any, np.dtype[Any]]:
    """Return the x that products are measured with: uniform in [-1, 1), the same every time.

    Real and imaginary parts of a complex x are drawn alike.
    """
    generator = np.random.default_rng(0)
    x = generator.uniform(-1.0, 1.0, cols).astype(dtype)
    if x.dtype.kind == "c":
        x.imag = generator.uniform(-1.0, 1.0, cols)
    return x


@driver_errors()
def measure_candidates(
    subject: Subject,
    candidates: Sequence[Candidate],
    effort: Effort,
    on_sample: Callable[[], None] = lambda: None,
    bench: Bench | None = None,
    on_left_out: LeftOut = lambda candidate, why: None,
) -> list[Record]:
    """Measure Candidates of one device, dtype and index width, sampled in turn; return a Record each.

    Candidates whose format turns out not to suit, or not to fit beside the others, are left out.

    Parameters
    ----------
    subject : Subject
    candidates : sequence of Candidate
    effort : Effort
    on_sample : callable
        Called after every sample, and after every reading of energy.
    bench : Bench, optional
        By default that of the device, with warm caches.
    on_left_out : callable
        Called with each Candidate that is left out, and why.

    Raises
    ------
    WrongResultError
        If a kernel's result differs from the oracle's by more than rounding.
    DeviceError
        If the device is not there, or is lost: nothing is returned then.
    MatrixSizeError
        If x, y or copies for cold caches exceed its memory.
    """
    if not candidates:
        return []
    first = candidates[0]
    bench = bench or bench_of(first.device)
    A = prepared(subject.matrix, first.dtype, first.index_bits)
    x = right_hand_side(A.shape[1], first.dtype)
    reference = ReferenceProduct.of(A, x)
    placed = bench.put(x)
    ready = []
    for candidate in candidates:
        try:
            ready.append(_prepare(A, candidate, placed, reference, bench))
        except (FormatError, MatrixSizeError) as error:
            on_left_out(candidate, error)
    out = bench.put(np.empty(A.shape[0], dtype=A.dtype))
    calls = {str(i): bench.call(item.candidate, item.bound, placed, out) for i, item in enumerate(ready)}
    timings = measure(calls, effort, on_sample, bench.clock) if calls else {}
    records = []
    for key, item in zip(calls, ready, strict=True):
        energy = bench.energy(calls[key])
        if energy:
            on_sample()
        records.append(_record(subject, item, timings[key], bench.regime, energy))
    return records


@driver_errors()  # before a candidate that does not fit after all is left out
def _prepare(
    A: csr_array[Any], candidate: Candidate, x: Any, reference: ReferenceProduct, bench: Bench
) -> _Prepared:
    warm_up(candidate)  # otherwise the conversion would be charged with compiling itself
    bound, convert_s = bench.bind(A, candidate)
    # Filled with NaN, so that a row the kernel forgets is found out.
    out = bench.put(np.full(A.shape[0], np.nan, dtype=A.dtype))
    bound.product(x, out)
    error = reference.check(bench.take(out), f"{candidate.format} {candidate.kernel}")
    return _Prepared(candidate, bound, convert_s, error)


def _record(subject: Subject, item: _Prepared, timing: Timing, regime: str, energy: Energy | None) -> Record:
    return Record(
        candidate=item.candidate,
        structure=subject.structure,
        matrix=subject.name,
        suite=subject.suite,
        samples_s=timing.samples_s,
        time_s=timing.time_s,
        spread=timing.spread,
        noise=timing.noise,
        retaken=0,
        regime=regime,
        error=item.error,
        convert_s=item.convert_s,
        stored_bytes=item.bound.matrix.nbytes,
        traffic_bytes=item.bound.matrix.traffic(),
        energy_j=energy.energy_j if energy else None,
        energy_source=energy.source if energy else None,
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        version=VERSION,
    )
