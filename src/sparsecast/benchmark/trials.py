"""Trials here: measure CSR on a matrix, build and time what is worth it by the rule of `planning.trials`.

Rows and columns in another order are tried beside the plan so far.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter

from sparsecast.benchmark.journal import TRIED_SUITE
from sparsecast.benchmark.measurement import record_of
from sparsecast.devices import DEVICES
from sparsecast.devices.binding import as_compiled, in_first_order
from sparsecast.devices.device import Device
from sparsecast.devices.product_timer import BuiltProduct, ProductTimer
from sparsecast.errors import InputError
from sparsecast.features.structure import Structure
from sparsecast.machines.machine import Machine
from sparsecast.matrices.problem import Problem
from sparsecast.measuring.timing import Call, Effort, Timing
from sparsecast.models.fitting import INTERVAL_SHARE
from sparsecast.models.forecaster import Forecaster
from sparsecast.models.probing import Correction, Measured, ProbedForecaster, is_plain_csr
from sparsecast.operators.block_operator import Product
from sparsecast.planning.plan import LEAST_GAIN, break_even
from sparsecast.planning.trials import HOPELESS, LOADER, LOST_SHARE, Contest, chance
from sparsecast.records import Candidate, Forecast, Record
from sparsecast.results.plan import Plan
from sparsecast.results.prediction import Trial, Trials
from sparsecast.system.texts import time

#: Samples of each product of a trial, for few products and for many.
_FEW, _MANY = 8, 24

#: Products of CSR that the samples of each take, for few products; and the share of many that they may.
_SAMPLED, _SAMPLED_SHARE = 5, 0.002

#: Seconds that the vectors and the first calls of trials take.
_SETUP_S = 0.001

#: Seconds that the samples of one product wait for full speed of the cores, where there is time for it.
_WAIT_S = 0.05

#: Products of CSR that it takes to measure CSR, and to keep what was measured: to compute the reference
#: result and the whole Structure.
_MEASURING, _KEEPING = 20, 300

#: So many products that no conversion matters.
UNLIMITED = 1e9


@dataclass(frozen=True)
class Spending:
    """What trials may cost: a share of the time of `products`, or the seconds that somebody stated.

    With `seconds`, what may be the fastest is tried whatever it costs, and to compile, or to load what was
    compiled before, does not count.
    """

    products: float
    seconds: float | None = None

    def effort(self, csr_s: float) -> Effort:
        """Return what is taken of each of the two products of a trial."""
        each_s = max(_SAMPLED, _SAMPLED_SHARE * self.products) * csr_s
        samples = int(min(max(each_s / csr_s / 2, _FEW), _MANY))
        wait_s = _WAIT_S if each_s > 2 * _WAIT_S else 0.0  # to find the full speed takes as long
        return Effort(samples, min(0.0005, each_s / 2 / samples), min(0.1, each_s), wait_s)

    @property
    def keeps(self) -> bool:
        """Whether there is time to check what is measured, and to keep it as Records."""
        return self.seconds is not None or LOST_SHARE * self.products > 4 * _KEEPING

    def may_pay(self, forecasts: Sequence[Forecast]) -> bool:
        """Tell whether plain CSR is worth measuring: so that something else may be tried."""
        csr = next((forecast for forecast in forecasts if is_plain_csr(forecast.candidate)), None)
        if csr is None or self.seconds is not None:
            return csr is not None
        contest = Contest(csr.candidate, csr.time_s, list(forecasts), lambda option: (0.0, 0.0))
        is_long = LOST_SHARE * self.products * csr.time_s > 2 * _MEASURING * csr.time_s + _SETUP_S
        return is_long and any(contest.net_gain_s(f, self.products) > 0 for f in contest.options)


@dataclass(frozen=True)
class Question:
    """Which Candidate of a matrix is the best, for the forecasts of a fitted model, plain CSR among them."""

    problem: Problem
    structure: Structure
    forecasts: Sequence[Forecast]
    model: Forecaster
    correction: Correction
    spending: Spending


@dataclass(frozen=True)
class Outcome:
    """What trials found: the best way as built, what was measured, the model with that, Records to keep."""

    trials: Trials
    kept: BuiltProduct
    measured: tuple[Measured, ...]
    model: ProbedForecaster
    records: tuple[Record, ...]

    def best(self, products: float) -> Measured:
        """Return the best way for so many products: the kept one, unless a conversion is not paid yet."""
        if self.trials.share is not None:
            return next(each for each in self.measured if each.candidate == self.kept.candidate)
        return min(self.measured, key=lambda each: products * each.time_s + (each.convert_s or 0.0))


@dataclass
class Bench:
    """Builds Candidates of one matrix and times them in turn with the best one so far.

    `loading_s` are the seconds that compiling took, or loading what was compiled before. What was measured
    stays, what was built for it does not.
    """

    asked: Question
    timer: ProductTimer
    effort: Effort
    loading_s: float = 0.0
    measured: dict[Candidate, Measured] = field(default_factory=dict)
    records: dict[Candidate, Record] = field(default_factory=dict)

    def built(self, candidate: Candidate) -> BuiltProduct:
        """Return a Candidate, built; where it is kept, a WrongResultError says that the kernel is wrong."""
        device = self.timer.device
        self.loading_s += LOADER.load(device, as_compiled(candidate, self.asked.structure))
        if self.asked.spending.keeps:
            return self.timer.build(candidate)
        return BuiltProduct(candidate, *device.bind(self.timer.A, candidate), error=0.0)

    def time(self, *products: BuiltProduct) -> list[float]:
        """Return the seconds of some products, sampled in turn."""
        calls: dict[Candidate, Call] = {each.candidate: self.timer.call(each) for each in products}
        timings = self.timer.time(calls, self.effort)
        return [self._noted(each, timings[each.candidate]) for each in products]

    def _noted(self, product: BuiltProduct, timing: Timing) -> float:
        candidate, time_s = product.candidate, timing.time_s
        self.measured[candidate] = Measured(candidate, time_s, timing.noise, product.convert_s)
        if self.asked.spending.keeps:
            named = self.asked.problem, TRIED_SUITE, self.timer.device
            self.records[candidate] = record_of(*named, product, timing)
        return time_s

    def seconds(self, candidate: Candidate, best_s: float, other_s: float) -> tuple[float, float]:
        """Return the forecast seconds of a trial's calls and loading: of a hopeless one, and of others."""
        loading_s = LOADER.forecast_s(as_compiled(candidate, self.asked.structure))
        glance_s = 4 * sum(max(self.effort.sample_s, each) for each in (best_s, other_s))
        samples = self.effort.samples * 1.25 + 4  # one of five is untimed, some tell how many calls fit
        least_s = glance_s + (loading_s if self.asked.spending.seconds is None else 0.0)
        return least_s, least_s + samples / 4 * glance_s

    def trial(self, option: Forecast, product: BuiltProduct, kept: BuiltProduct, best_s: float) -> Trial:
        """Time a product in turn with the best one so far, unless a glance shows that it is hopeless."""
        clock, glances = self.timer.device.clock(), []
        for each in (kept, product):  # three samples, after an untimed call, each as long as the usual ones
            call = self.timer.call(each)
            call()
            calls = max(1, round(self.effort.sample_s / max(best_s, clock.seconds(call, 1))))
            glances.append(Timing.of(tuple(clock.seconds(call, calls) / calls for _ in range(3))))
        other, glance = glances
        other_s, time_s = min(other.samples_s), min(glance.samples_s)  # interference only adds time
        if self.asked.spending.seconds is None and time_s > HOPELESS * other_s:
            self._noted(product, glance)
        else:
            other_s, time_s = self.time(kept, product)
        is_kept = time_s < other_s
        return Trial(product.candidate, option.time_s, product.convert_s, time_s, other_s, is_kept)


def try_contenders(asked: Question, device: Device) -> Outcome:
    """Measure CSR, whatever it takes, correct the forecasts by it, and try what is worth it.

    The most promising comes first. Errors are those of a measurement.
    """
    spending = asked.spending
    csr = next(forecast for forecast in asked.forecasts if is_plain_csr(forecast.candidate))
    with device.errors():
        LOADER.load(device, csr.candidate)  # whoever uses the matrix needs it
        if spending.keeps:
            _ = asked.problem.specification  # of a file, its checksum
        start = perf_counter()
        timer = ProductTimer(asked.problem.matrix, csr.candidate, device)
        bench = Bench(asked, timer, spending.effort(csr.time_s))
        kept = bench.built(csr.candidate)
        [csr_s] = bench.time(kept)

        def used_s() -> float:
            return perf_counter() - start - (0.0 if spending.seconds is None else bench.loading_s)

        def extra_s(option: Forecast) -> tuple[float, float]:
            return bench.seconds(option.candidate, contest.best_s, option.time_s)

        options = asked.correction.forecasts(asked.forecasts, csr_s)
        keeping_s = _KEEPING * csr_s if spending.keeps and spending.seconds is None else 0.0
        contest = Contest(
            csr.candidate, csr_s, options, extra_s, used_s() + keeping_s + asked.problem.spent_s
        )
        while (option := _next(contest, spending, used_s())) is not None:
            began_s = used_s()
            try:
                product = bench.built(option.candidate)
            except (InputError, MemoryError):
                contest.add(Trial(option.candidate, option.time_s), used_s() - began_s, 0)
                continue
            trial = bench.trial(option, product, kept, contest.best_s)
            contest.add(trial, used_s() - began_s, spending.products)
            kept = product if trial.is_kept else kept
    measured = tuple(bench.measured.values())
    took_s, plain_s = used_s(), bench.measured[csr.candidate].time_s
    share = None if spending.seconds is not None else took_s / (spending.products * plain_s)
    gain_s = max(0.0, plain_s - bench.measured[kept.candidate].time_s)
    trials = Trials(took_s, csr_s / csr.time_s, gain_s, contest.tried, share)
    model = ProbedForecaster(asked.model, asked.structure, asked.correction, measured)
    return Outcome(trials, kept, measured, model, tuple(bench.records.values()))


def _next(contest: Contest, spending: Spending, used_s: float) -> Forecast | None:
    """Return what to try next: of what is worth it, what is expected to gain the most."""
    worth = [
        option
        for option in contest.options
        if (
            contest.pays_from(option) <= spending.products
            if spending.seconds is None
            else used_s + contest.cost_s(option) <= spending.seconds
            and chance(contest.best_s, option) > (1 - INTERVAL_SHARE) / 2
        )
    ]
    return max(worth, key=lambda option: contest.rank(option, spending.products), default=None)


#: Products of CSR that it takes to find the order and the matrix in it: at most 675 on 28 real matrices, 110
#: and 195 in the median with one and two threads (decision 56).
_ORDERING = 700

#: With a Candidate, the key of what is built in another order.
REORDERED = "reordered"

_EFFORT = Effort(samples=20, most_s=0.05, wait_s=0.05)


def may_pay(made: Plan, structure: Structure, machine: Machine) -> bool:
    """Tell whether another order is worth a trial, for a plan of one block that was tried.

    Columns that one row reaches must lie farther apart than the nearest cache is large, and what the order
    costs, with the trials before, must be within what may be lost.
    """
    candidate, trials = made.baseline.candidate, made.trials
    if trials is None or trials.share is None or candidate.vectors > 1 or structure.rows != structure.cols:
        return False
    if not machine.caches or structure.lacks(["bands"]) or not DEVICES.get(candidate.device).shares_host:
        return False
    reach_bytes = structure.bands.half_bandwidth * candidate.value_bytes
    share = trials.share + _ORDERING / made.products
    return share <= LOST_SHARE and reach_bytes > machine.caches[0].bytes


def in_best_order(problem: Problem, made: Plan, planned: Callable[[Problem], Plan]) -> Plan:
    """Return the plan of a matrix in the order of reverse Cuthill-McKee if that is faster, else the one made.

    Both products are timed in turn, the one in the other order with copies of x and y. What is faster stays
    with the problem, as built.
    """
    start, candidate = perf_counter(), made.blocks[0].candidate
    try:
        other = problem.in_other_order()
        ordering_s = perf_counter() - start
        other.spent_s = ordering_s + (made.trials.used_s if made.trials else 0.0)
        there = planned(other)
        block = there.blocks[0]
        if block.candidate not in other.built or other.order is None:
            return _with_note(made, start, "In the order of reverse Cuthill-McKee nothing was worth a trial.")
        after = in_first_order(other.built[block.candidate], other.order, block.candidate)
        before_s, after_s = _times_s(problem, candidate, problem.built[candidate].product, after.product)
    except (InputError, MemoryError) as error:
        return _with_note(made, start, f"The order of reverse Cuthill-McKee was not tried: {error}.")
    is_faster = after_s * (1 + LEAST_GAIN) < before_s
    note = (
        f"In the order of reverse Cuthill-McKee, with copies of x and y, a product took {time(after_s)} "
        f"instead of {time(before_s)}: {'kept' if is_faster else 'dropped'}."
    )
    if not is_faster:
        return _with_note(made, start, note)
    del problem.built[candidate]
    problem.built[block.candidate, REORDERED] = after
    convert_s, ratio = there.convert_s + ordering_s, after_s / there.time_s
    return replace(
        _with_note(made, start, note, before_s - after_s),
        blocks=(replace(block, time_s=after_s, convert_s=convert_s),),
        order=other.order,
        time_s=after_s,
        low_s=None if there.low_s is None else there.low_s * ratio,
        high_s=None if there.high_s is None else there.high_s * ratio,
        convert_s=convert_s,
        break_even_products=break_even(convert_s - made.baseline.convert_s, made.baseline.time_s - after_s),
        energy_j=None,
        energy_low_j=None,
        energy_high_j=None,
    )


def _with_note(made: Plan, start: float, note: str, gain_s: float = 0.0) -> Plan:
    """Return a plan with a note, the seconds since `start` and a gain among those of its trials."""
    trials, used_s = made.trials, perf_counter() - start
    if trials is not None and trials.share is not None:
        share = trials.share * (1 + used_s / trials.used_s)
        trials = replace(trials, used_s=trials.used_s + used_s, gain_s=trials.gain_s + gain_s, share=share)
    return replace(made, notes=(*made.notes, note), trials=trials)


def _times_s(problem: Problem, like: Candidate, *products: Product) -> list[float]:
    """Return the seconds of products on the host, sampled in turn."""
    timer = ProductTimer(problem.matrix, like, DEVICES.get(like.device))
    calls = {number: partial(product, timer.x, timer.out) for number, product in enumerate(products)}
    for call in calls.values():
        call()  # untimed
    return [timing.time_s for timing in timer.time(calls, _EFFORT).values()]
