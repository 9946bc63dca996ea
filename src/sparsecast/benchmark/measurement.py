"""Measure Candidates on a matrix: build them, check them against the reference result, time them in turn.

To check a plan, its operator, plain CSR and SciPy are sampled in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

from scipy.sparse import csr_array

from sparsecast.devices import DEVICES
from sparsecast.devices.binding import as_compiled
from sparsecast.devices.device import Device
from sparsecast.devices.product_timer import BuiltProduct, ProductTimer, right_hand_side
from sparsecast.errors import FormatError, InputError, MatrixSizeError
from sparsecast.formats import FORMATS
from sparsecast.matrices.problem import Problem
from sparsecast.measuring.condition_monitor import ConditionMonitor, waited_for_cores
from sparsecast.measuring.energy import Meter, energy_of
from sparsecast.measuring.timing import Call, Effort, Lingering, Speedup, Timing, measure
from sparsecast.operators.block_operator import BlockOperator
from sparsecast.records import Candidate, Record
from sparsecast.results.plan import Plan, PlanCheck
from sparsecast.system.version import VERSION

#: Told which Candidate is left out, and why.
LeftOut = Callable[[Candidate, InputError], None]


@dataclass(frozen=True)
class Instruments:
    """What products are measured with.

    A meter reads the energy of every Candidate, which takes seconds each; without one, none is read.
    `idle_w` is what it read while nothing was done. The monitor is that of the run that the
    measurement belongs to.
    """

    device: Device
    meter: Meter | None = None
    monitor: ConditionMonitor = field(default_factory=ConditionMonitor)
    idle_w: float | None = None


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

    By default, `instruments` are the Candidates' device, with warm caches. `on_sample` is called after every
    sample, and after every reading of energy; `on_left_out` with each Candidate that is left out, and why.

    A WrongResultError says that a kernel's result differs from the reference result by more than rounding, a
    DeviceError that the device cannot be found, or is lost: nothing is returned then. A MatrixSizeError says
    that x, y or copies for cold caches exceed its memory.
    """
    if not candidates:
        return []
    first = max(candidates, key=lambda candidate: candidate.threads)
    used = instruments or Instruments(DEVICES.get(first.device))
    device, monitor = used.device, used.monitor
    with device.errors():
        timer = ProductTimer(problem.matrix, first, device)
        for candidate in candidates:  # otherwise conversions would be charged with compiling themselves
            device.warm_up(as_compiled(candidate, problem.structure))
        products = _built(timer, candidates, on_left_out)
        if not products:
            return []

        def watch() -> None:
            monitor.look()
            on_sample()

        calls = {product.candidate: timer.call(product) for product in products}
        monitor.begin()
        timings = timer.time(calls, effort, watch)
        conditions = replace(monitor.conditions(), idle_w=used.idle_w, frequency_hz=device.frequency_hz())
        records = []
        for product in products:
            timing = timings[product.candidate]
            waited = waited_for_cores(timing, conditions)
            energy_j = None
            if used.meter is not None:
                nnz = int(problem.matrix.nnz)
                energy_j = energy_of(calls[product.candidate], used.meter, device.clock(), nnz)
            if energy_j is not None:
                on_sample()
            records.append(
                replace(
                    record_of(problem, suite, device, product, timing),
                    energy_j=energy_j,
                    energy_source=used.meter.source if used.meter and energy_j is not None else None,
                    conditions=replace(conditions, slow_share=timing.slow_share, waited_for_cores=waited),
                )
            )
    return records


def _built(timer: ProductTimer, candidates: Sequence[Candidate], on_left_out: LeftOut) -> list[BuiltProduct]:
    """Build and check every Candidate that suits the matrix and fits."""
    products = []
    for candidate in candidates:
        try:
            with timer.device.errors():  # before a candidate that does not fit after all is left out
                products.append(timer.build(candidate))
        except (FormatError, MatrixSizeError) as error:
            on_left_out(candidate, error)
    return products


def record_of(problem: Problem, suite: str, device: Device, product: BuiltProduct, timing: Timing) -> Record:
    kernels, vectors = device.kernels.get(product.candidate.format), product.candidate.vectors
    matrix = product.bound.matrix
    of_vectors = matrix.traffic() - matrix.nbytes
    return Record(
        candidate=product.candidate,
        matrix=problem.specification,
        nnz=int(problem.matrix.nnz),
        suite=suite,
        samples_s=timing.samples_s,
        time_s=timing.time_s,
        spread=timing.spread,
        noise=timing.noise,
        regime=device.regime,
        error=product.error,
        convert_s=product.convert_s,
        stored_bytes=matrix.nbytes,
        traffic_bytes=kernels.passes(vectors) * matrix.nbytes + vectors * of_vectors,
        energy_j=None,
        energy_source=None,
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        version=VERSION,
        kernel_version=kernels.version,
    )


def check_plan(
    A: csr_array[Any], plan: Plan, build: Callable[[], BlockOperator], effort: Effort, device: Device
) -> PlanCheck:
    """Build a plan's operator, check its result, and time it against its baseline and SciPy.

    They are sampled in turn; SciPy, which computes on the host, is sampled after those on another device.

    A WrongResultError says that the operator is wrong, a DeviceError that the device cannot be found, or is
    lost, a MatrixSizeError that its memory is too small.
    """
    with device.errors():
        baseline = plan.baseline.candidate
        timer = ProductTimer(A, baseline, device)
        candidates = {block.candidate for block in plan.blocks}
        for candidate in candidates:
            device.warm_up(candidate)
        start = perf_counter()
        operator = build()
        convert_s = perf_counter() - start
        product: Any = operator.matvec if baseline.vectors == 1 else operator.matmat
        error = timer.check(product, "the planned operator", candidates)
        linger_s = max((FORMATS.get(each.format).linger_s for each in candidates), default=0.0)
        calls: dict[str, Call] = {
            "plan": Lingering(lambda: product(timer.x, timer.out), linger_s),
            "baseline": timer.unchecked(baseline),
        }
        x = timer.x if device.shares_host else right_hand_side(A.shape[1], baseline.dtype)
        scipy: dict[str, Call] = {"scipy": lambda: timer.A @ x}
        if device.shares_host:
            timings = timer.time(calls | scipy, effort)
        else:
            timings = timer.time(calls, effort) | measure(scipy, effort)
        return PlanCheck(
            timings["plan"].time_s,
            timings["baseline"].time_s,
            timings["scipy"].time_s,
            max((timing.noise for timing in timings.values() if timing.noise is not None), default=None),
            convert_s,
            error,
            Speedup.of(timings["plan"], timings["scipy"]),
        )
