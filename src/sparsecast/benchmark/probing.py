"""Probes: measure CSR on a matrix, correct the other forecasts by it, measure those that may be fastest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter

from sparsecast.benchmark.journal import USER_SUITE
from sparsecast.benchmark.measurement import record_of
from sparsecast.devices.device import Device
from sparsecast.devices.product_timer import BuiltProduct, ProductTimer
from sparsecast.errors import FormatError, MatrixSizeError, ProfileError
from sparsecast.features.structure import Structure
from sparsecast.matrices.problem import Problem
from sparsecast.measuring.timing import Effort, Timing
from sparsecast.models.forecaster import Forecaster
from sparsecast.models.probing import PROBED, Correction, ProbedForecaster
from sparsecast.records import Candidate, Forecast, Record
from sparsecast.results.prediction import Probe

#: What a probe takes of one Candidate: a few products, or some tens of short ones.
PROBE_EFFORT = Effort(samples=16, sample_s=0.0005, most_s=0.1, wait_s=0.05)

#: Products that `PROBE_EFFORT` takes of the longest ones: trials, untimed ones, and three samples.
_LEAST_PRODUCTS = 8


@dataclass
class Bench:
    """Builds Candidates of one matrix, checks each, and times them in turn.

    `compiling_s` are the seconds that compiling took, or loading what was compiled before.
    """

    problem: Problem
    timer: ProductTimer
    compiling_s: float = 0.0
    _products: dict[Candidate, BuiltProduct] = field(default_factory=dict)
    _timings: dict[Candidate, Timing] = field(default_factory=dict)

    def measure(self, new: Candidate, known: Candidate | None = None) -> None:
        """Build a Candidate and take samples of it, in turn with one that was measured before.

        It raises as `ProductTimer.build` does.
        """
        start = perf_counter()
        self.timer.device.warm_up(new)
        self.compiling_s += perf_counter() - start
        self._products[new] = self.timer.build(new)
        together = [new] if known is None else [known, new]
        calls = {candidate: self.timer.call(self._products[candidate]) for candidate in together}
        for candidate, timing in self.timer.time(calls, PROBE_EFFORT).items():
            if candidate not in self._timings or timing.time_s < self._timings[candidate].time_s:
                self._timings[candidate] = timing

    def records(self) -> list[Record]:
        records = [
            record_of(self.problem, USER_SUITE, self.timer.device, self._products[candidate], timing)
            for candidate, timing in self._timings.items()
        ]
        return sorted(records, key=lambda record: record.time_s)


@dataclass(frozen=True)
class Question:
    """What a probe is to answer: which of the Candidates of a matrix is the fastest, for a fitted model."""

    problem: Problem
    structure: Structure
    candidates: Sequence[Candidate]
    model: Forecaster
    correction: Correction


def probe(asked: Question, device: Device, seconds: float) -> tuple[ProbedForecaster, Probe]:
    """Measure CSR, correct the forecasts by it, and measure those whose intervals still overlap.

    The fastest comes first. Another one is measured while the forecast of its conversion and of its
    products fits in what is left of `seconds`. CSR is measured whatever it takes; to compile, or to load what
    was compiled before, does not count.

    Raises
    ------
    ProfileError
        If the model forecasts no CSR.
    DeviceError, MatrixSizeError, WrongResultError
        As in a measurement.
    """
    csr = next((each for each in asked.candidates if each.format == PROBED), None)
    if csr is None or not asked.model.serves(csr):
        raise ProfileError(
            f"the {asked.model.name} model has no forecast of CSR for this matrix: expected one, which a "
            f"probe compares with its measurement; choose another model, or leave --probe out"
        )
    start = perf_counter()
    with device.errors():
        bench = Bench(asked.problem, ProductTimer(asked.problem.matrix, csr, device))
        bench.measure(csr)
    unmeasurable: set[Candidate] = set()
    while True:
        records = bench.records()
        corrected = ProbedForecaster(asked.model, asked.structure, asked.correction, records)
        used_s = perf_counter() - start - bench.compiling_s
        left_s = seconds - used_s
        open_ = [
            forecast
            for forecast in _contenders(corrected.forecast(asked.structure, asked.candidates))
            if forecast.candidate not in unmeasurable and _cost_s(forecast, records[0]) <= left_s
        ]
        if not open_:
            measured = tuple(record.candidate.format for record in records)
            return corrected, Probe(used_s, corrected.csr_factor, measured)
        try:
            with device.errors():
                bench.measure(open_[0].candidate, records[0].candidate)
        except (FormatError, MatrixSizeError):
            unmeasurable.add(open_[0].candidate)


def _contenders(forecasts: Sequence[Forecast]) -> list[Forecast]:
    """Return those that may be the fastest and were not measured, fastest first."""
    most_s = forecasts[0].high_s
    may_be = [f for f in forecasts if most_s is None or f.low_s is None or f.low_s <= most_s]
    return [f for f in may_be if f.basis != "measured"] if len(may_be) > 1 else []


def _cost_s(new: Forecast, known: Record) -> float:
    """Return the forecast seconds to build a Candidate and to take samples of it, in turn with another."""
    least_s = PROBE_EFFORT.samples * PROBE_EFFORT.sample_s
    products_s = sum(max(least_s, _LEAST_PRODUCTS * each.time_s) for each in (new, known))
    return (new.convert_s or 0.0) + products_s
