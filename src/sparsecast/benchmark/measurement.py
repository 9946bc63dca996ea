"""Measure Candidates on a matrix: build them, check them against the oracle, time them in turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from sparsecast.devices import DEVICES
from sparsecast.devices.binding import Bound, prepared
from sparsecast.devices.device import Device
from sparsecast.devices.reference import ReferenceProduct
from sparsecast.errors import FormatError, InputError, MatrixSizeError
from sparsecast.matrices.problem import Problem
from sparsecast.measuring.disturbance import waited_for_cores
from sparsecast.measuring.energy import Meter, energy_of
from sparsecast.measuring.surroundings import Surroundings
from sparsecast.measuring.timing import Call, Effort, Timing, measure
from sparsecast.records import Candidate, Record
from sparsecast.system.version import VERSION

#: Told which Candidate is left out, and why.
LeftOut = Callable[[Candidate, InputError], None]

#: Key of the product with one thread among the timings.
_ALONE = "alone"


@dataclass(frozen=True)
class Instruments:
    """What products are measured with.

    A meter reads the energy of every Candidate, which takes seconds each; without one, none is read.
    `idle_w` is what it read while nothing was done. The surroundings are those of the run that the
    measurement belongs to.
    """

    device: Device
    meter: Meter | None = None
    surroundings: Surroundings = field(default_factory=Surroundings)
    idle_w: float | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A Candidate that is built and checked."""

    candidate: Candidate
    bound: Bound
    convert_s: float
    error: float


def right_hand_side(cols: int, dtype: str) -> np.ndarray[Any, np.dtype[Any]]:
    """Return the x that products are measured with: uniform in [-1, 1), the same every time."""
    generator = np.random.default_rng(0)
    x = generator.uniform(-1.0, 1.0, cols).astype(dtype)
    if x.dtype.kind == "c":
        x.imag = generator.uniform(-1.0, 1.0, cols)
    return x


def prepare(
    A: csr_array[Any], candidate: Candidate, x: Any, reference: ReferenceProduct, device: Device
) -> Prepared:
    """Build a Candidate and check it against the oracle; `x` is where the device computes."""
    device.warm_up(candidate)  # otherwise the conversion would be charged with compiling itself
    bound, convert_s = device.bind(A, candidate)
    # Filled with NaN, so that a row the kernel forgets is found out.
    out = device.put(np.full(A.shape[0], np.nan, dtype=A.dtype))
    bound.product(x, out)
    error = reference.check(device.take(out), f"{candidate.format} {candidate.kernel}")
    return Prepared(candidate, bound, convert_s, error)


def measure_candidates(
    problem: Problem,
    suite: str,
    candidates: Sequence[Candidate],
    effort: Effort,
    instruments: Instruments | None = None,
    on_sample: Callable[[], None] = lambda: None,
    on_left_out: LeftOut = lambda candidate, why: None,
) -> list[Record]:
    """Measure Candidates of one device, dtype and index width, sampled in turn; return a Record each.

    A Candidate is left out if its format does not suit, or does not fit in memory with the others.

    Parameters
    ----------
    problem, suite, candidates, effort
        What is measured, why as in a Record, and how long.
    instruments : Instruments, optional
        By default the Candidates' device, with warm caches.
    on_sample : callable
        Called after every sample, and after every reading of energy.
    on_left_out : callable
        Called with each Candidate that is left out, and why.

    Raises
    ------
    WrongResultError
        If a kernel's result differs from the oracle's by more than rounding.
    DeviceError
        If the device cannot be found, or is lost: nothing is returned then.
    MatrixSizeError
        If x, y or copies for cold caches exceed its memory.
    """
    if not candidates:
        return []
    first = candidates[0]
    used = instruments or Instruments(DEVICES.get(first.device))
    device, surroundings = used.device, used.surroundings
    with device.errors():
        clock = device.clock()
        A = prepared(problem.matrix, first.dtype, first.index_bits)
        x = right_hand_side(A.shape[1], first.dtype)
        ready = _all_prepared(A, candidates, x, device, on_left_out)
        placed, out = device.put(x), device.put(np.empty(A.shape[0], dtype=A.dtype))
        calls = {str(i): device.call(each.candidate, each.bound, placed, out) for i, each in enumerate(ready)}
        if not calls:
            return []

        def watch() -> None:
            surroundings.look()
            on_sample()

        csr = next((i for i, each in enumerate(ready) if _is_parallel_csr(each.candidate)), None)
        alone = {} if csr is None else {_ALONE: _alone(A, ready[csr].candidate, placed, out, device)}
        surroundings.begin()
        timings = measure(calls | alone, effort, watch, clock, device.core_speed(first.threads))
        conditions = replace(
            surroundings.conditions(), idle_w=used.idle_w, frequency_hz=device.frequency_hz()
        )
        if csr is not None:
            waited = waited_for_cores(timings[str(csr)], timings[_ALONE], conditions)
            conditions = replace(conditions, waited_for_cores=waited)
        records = []
        for key, item in zip(calls, ready, strict=True):
            energy_j = energy_of(calls[key], used.meter, clock) if used.meter else None
            if energy_j is not None:
                on_sample()
            record = record_of(problem, suite, device, item, timings[key])
            source = used.meter.source if used.meter and energy_j is not None else None
            seen = replace(conditions, slow_share=timings[key].slow_share)
            records.append(replace(record, energy_j=energy_j, energy_source=source, conditions=seen))
    return records


def _all_prepared(
    A: csr_array[Any], candidates: Sequence[Candidate], x: Any, device: Device, on_left_out: LeftOut
) -> list[Prepared]:
    """Build and check every Candidate that suits the matrix and fits."""
    reference, placed, ready = ReferenceProduct.of(A, x), device.put(x), []
    for candidate in candidates:
        try:
            with device.errors():  # before a candidate that does not fit after all is left out
                ready.append(prepare(A, candidate, placed, reference, device))
        except (FormatError, MatrixSizeError) as error:
            on_left_out(candidate, error)
    return ready


def _is_parallel_csr(candidate: Candidate) -> bool:
    return candidate.format == "csr" and candidate.threads > 1


def _alone(A: csr_array[Any], candidate: Candidate, x: Any, out: Any, device: Device) -> Call:
    """Return the same product with one thread, to check one in parallel."""
    candidate = replace(candidate, threads=1)
    device.warm_up(candidate)
    return device.call(candidate, device.bind(A, candidate)[0], x, out)


def record_of(problem: Problem, suite: str, device: Device, item: Prepared, timing: Timing) -> Record:
    """Return the Record of what was built and timed."""
    return Record(
        candidate=item.candidate,
        matrix=problem.specification,
        nnz=int(problem.matrix.nnz),
        suite=suite,
        samples_s=timing.samples_s,
        time_s=timing.time_s,
        spread=timing.spread,
        noise=timing.noise,
        regime=device.regime,
        error=item.error,
        convert_s=item.convert_s,
        stored_bytes=item.bound.matrix.nbytes,
        traffic_bytes=item.bound.matrix.traffic(),
        energy_j=None,
        energy_source=None,
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        version=VERSION,
        kernel_version=device.kernels.get(item.candidate.format).version,
    )
