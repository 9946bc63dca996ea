"""A calibration: the benchmark matrices, measured within a budget, each kept at once.

The required matrices come first, so that a short budget gives a coarse profile and not half of a fine one.

The next matrices are made several at once, before a device is measured on them, not meanwhile: a thread that
computes here delays the launches of the products that are timed.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from math import inf
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar

from sparsecast.benchmark.journal import Measurements, journal, read_journal
from sparsecast.benchmark.measurement import Instruments, measure_candidates
from sparsecast.devices import DEVICES
from sparsecast.devices.compiling import compiled_in_turn
from sparsecast.devices.device import Device
from sparsecast.devices.target import Target, whole_matrix
from sparsecast.errors import DeviceError, FormatError, InputError, MatrixSizeError, MissingLibraryError
from sparsecast.features.analysis import structure
from sparsecast.formats import FORMATS
from sparsecast.formats.libraries import LIBRARIES
from sparsecast.formats.narrowing import NARROW_PARAMETERS
from sparsecast.machines import storage
from sparsecast.machines.machine import Machine
from sparsecast.machines.profile import Profile, user_path
from sparsecast.matrices.problem import Problem
from sparsecast.matrices.suites import SUITES, Suite, SuiteMatrix, in_turn
from sparsecast.matrices.synthesis import varied_matrix
from sparsecast.measuring.condition_monitor import ConditionMonitor
from sparsecast.measuring.energy import Meter, idle_power_w
from sparsecast.measuring.timing import Effort
from sparsecast.models.model import HELD_OUT_SUITE
from sparsecast.records import PANEL_VECTORS, Bandwidth, Candidate, Parameters, Record
from sparsecast.system.memory import free_bytes

#: Seconds below which not even the required matrices get measured on a cold compilation cache.
LEAST_BUDGET_S = 10.0

#: With a smaller budget for each target, neither narrow storage of our formats nor several vectors are
#: measured: to compile their kernels takes a third of a minute, and the formats come first. An entry then
#: costs as much as in full storage, and several vectors are forecast from one.
_LEAST_NARROW_S = 70.0

#: The share of such a budget in which products of PANEL_VECTORS are measured, but for compiling.
_SEVERAL_SHARE = 0.1

#: Share of the free memory that a benchmark matrix may take in all its formats together.
MEMORY_SHARE = 0.25

#: Values, and further bytes, that one entry takes while it is measured: the CSR arrays, the largest other
#: format, and the values of the reference product in double precision.
_VALUES_AN_ENTRY, _MORE_BYTES = 3, 20

QUICK_EFFORT = Effort(samples=24, sample_s=0.0005, most_s=0.1, wait_s=0.05)
FULL_EFFORT = Effort(samples=40, sample_s=0.0005, most_s=0.2, wait_s=0.2)

#: Seconds that it takes to tell how many calls a sample has, and the calls a sample that are not timed.
_TRIALS_S, _UNTIMED = 0.003, 0.25

#: From this budget a target on, there is time for the full effort.
_FULL_EFFORT_BUDGET_S = 60.0

#: The share of the budget that a benchmark gets whose figures are wanted. Where they are not, it gets what
#: the models' matrices leave, if that is as many seconds as these.
_RATING_SHARE, _LEAST_REST_S = 0.75, 30.0

#: Seconds of a budget for each target that is rated; the last ones are left out where they do not suffice.
_SETTING_S = 75.0

#: Seconds that measuring the bandwidth of a target may take. Where that is at most this share of the budget,
#: bandwidths come first: the costs of whole runs need them, and the matrices may take all the time.
_STREAMS_S, _STREAMS_SHARE = 5.0, 0.1

#: Seconds of the budget for the figures that starting Python, before the run, and saving take.
_AROUND_S = 4.0

Progress = Callable[[float, float, str], None]


def no_progress(done_s: float, total_s: float, item: str) -> None:
    """Show nothing."""


#: A matrix, and the Records that were made of it.
Measured = tuple[Problem, list[Record]]


class OutOfTime(Exception):  # noqa: N818 - nothing is wrong
    """A measurement is given up, because the time is over."""


@dataclass(frozen=True)
class RatingResult:
    """What a rating suite says of a machine."""

    figures: Mapping[str, float | None]  # by name; None where nothing was measured
    sentences: tuple[str, ...]  # for people
    notes: tuple[str, ...]  # what was left out, or disturbed, and why


class RatingSuite(Suite):
    """Benchmark matrices that rate a machine in figures; it measures them itself, within a time limit."""

    least_budget_s: ClassVar[float]

    @abstractmethod
    def measured(self, run: Calibration, limit_s: float) -> Iterator[Measured]:
        """Measure for so many seconds, and yield each matrix with its Records as they are made."""

    @abstractmethod
    def result(self, run: Calibration) -> RatingResult:
        """Return the figures of what a run has measured."""


def rating_suites() -> list[RatingSuite]:
    suites = (SUITES.get(name)() for name in SUITES.names())
    return [suite for suite in suites if isinstance(suite, RatingSuite)]


class Budget:
    """The seconds of a run: what is used of them, and what a matrix will take.

    After `end_s` of the seconds nothing is measured any more. `effort` is for each candidate.
    """

    def __init__(self, end_s: float, effort: Effort) -> None:
        self.end_s, self._effort = end_s, effort
        self._pace, self._last_pace = 1.0, inf
        self.start()

    def start(self) -> None:
        self._start_s = perf_counter()

    @property
    def used_s(self) -> float:
        return perf_counter() - self._start_s

    def estimate_s(self, matrix: SuiteMatrix, target: Target) -> float:
        """Return the seconds that a matrix will take, as far as those before it tell."""
        measured = [FORMATS.get(name) for name in measured_formats(matrix, target)]
        narrow = sum(bool(each.narrow_parameters) for each in measured) if matrix.in_narrow_storage else 0
        calls = len(measured) + narrow
        product_s = 1e-9 * matrix.entries
        samples_s = self._effort.samples * max(self._effort.sample_s, (1 + _UNTIMED) * product_s)
        timing_s = _TRIALS_S + min(samples_s, self._effort.most_s + 4 * product_s)
        # Building, converting and checking take about 200 ns an entry.
        return self._pace * (calls * timing_s + 200e-9 * matrix.entries)

    def learn(self, estimate_s: float, took_s: float) -> None:
        """Take what a matrix took. The pace follows slow matrices at once and fast ones slowly.

        A single slow one among fast ones does not count: it had a block size compiled.
        """
        before, self._last_pace = self._last_pace, self._pace * took_s / estimate_s
        self._pace = max(min(before, self._last_pace), 0.9 * self._pace)

    def suffices(self, estimate_s: float) -> bool:
        return self.used_s + estimate_s <= self.end_s

    def watch(self) -> None:
        """Raise OutOfTime after the end: a measurement took much longer than expected."""
        if self.used_s > self.end_s:
            raise OutOfTime


@dataclass
class Calibration:
    """One run of the benchmark on this machine."""

    machine: Machine
    targets: Sequence[Target]  # what to measure, the most wanted first
    budget_s: float
    #: Called with the seconds done, the seconds expected in all, and what is being measured.
    on_progress: Progress = no_progress
    device: Device | None = None  # by default that of the machine
    #: The benchmark whose figures are wanted: it comes first. By default the models' matrices do.
    rating: RatingSuite | None = None
    last: Sequence[RatingSuite] = ()  # benchmarks that get what the models' matrices leave
    path: Path | None = None  # where the profile is kept; by default its place in the user's data folder
    effort: Effort | None = None  # for each candidate on the models' matrices; by default the budget decides
    #: Names in SUITES, of which and of the gallery everything is measured, instead of the usual matrices.
    suites: Sequence[str] = ()
    #: Whether it leaves out what the profile at `path` holds already; else it measures that again.
    adds: bool = False
    #: Told the name of a matrix whose measurement failed, and the error; the run goes on. By default the
    #: error ends the run. A device that is lost always does.
    on_failure: Callable[[str, Exception], None] | None = None
    #: What this run has measured so far; what it took over from a killed one is in the profile only.
    measured: Measurements = field(default_factory=Measurements)
    #: Not in the journal, as they are quickly measured again.
    bandwidths: list[Bandwidth] = field(default_factory=list)
    interrupted: bool = False
    #: Seconds used by each part of the run so far.
    phases: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    notes: list[str] = field(default_factory=list)  # what was left out and why

    def __post_init__(self) -> None:
        least = self.rating.least_budget_s if self.rating else LEAST_BUDGET_S
        if not self.budget_s >= least:
            raise InputError(
                f"budget {self.budget_s:g} s: expected at least {least:g} s, "
                f"what the required matrices take; raise the budget"
            )
        if self.rating:
            # Keep the first targets that the budget suffices for: each one's figures take their time.
            affordable = max(1, int(min(len(self.targets), self.budget_s / _SETTING_S)))
            if affordable < len(self.targets):
                self.notes.append(
                    f"time for {affordable} of {len(self.targets)} combinations of type and threads"
                )
                self.targets = self.targets[:affordable]
        self.targets = [_with_own_libraries(target, self.targets) for target in self.targets]
        share = self.budget_s / len(self.targets)
        self._effort = self.effort or (FULL_EFFORT if share >= _FULL_EFFORT_BUDGET_S else QUICK_EFFORT)
        self._budget = Budget(self.budget_s - (_AROUND_S if self.rating else 0.0), self._effort)
        self.device_measured = self.device or DEVICES.get(self.machine.device)
        self._suites = self._named_suites()
        #: The suites of this run that sum up a machine in figures.
        self.rating_suites = [suite for suite in self._suites.values() if isinstance(suite, RatingSuite)]
        self._is_short = self.budget_s < _LEAST_NARROW_S * len(self.targets)
        self._ready: set[Target] = set()
        self._compiled: set[Candidate] = set()
        self._done: set[tuple[Any, ...]] = set()
        self._taken_over: defaultdict[tuple[Any, ...], set[str]] = defaultdict(set)
        self._monitors: dict[int, ConditionMonitor] = {}

    def _named_suites(self) -> Mapping[str, Suite]:
        """Return the suites that were asked for; those that rate get what the models' matrices leave."""
        if not self.suites:
            rated = (self.rating,) if self.rating else self.last
            return {suite.name: suite for suite in rated}
        threads = self.targets[0].threads
        every = {name: SUITES.get(name)() for name in SUITES.names()}
        known = {
            name: suite
            for name, suite in every.items()
            if isinstance(suite, RatingSuite) or suite.whole(self.machine, threads)
        }
        for name in self.suites:
            if name not in known:
                raise InputError(f"suite '{name}': expected {', '.join(known)}, or several; name some")
        return {name: known[name] for name in self.suites}

    def compile_kernels(self) -> None:
        """Compile all kernels now, before `run` begins to count its budget."""
        for target in self.targets:
            self._compile(target)

    def run(self) -> Profile:
        """Measure until all is measured, the budget is spent or the user interrupts; save the profile.

        What an earlier run that was killed left in the journal is taken over first.

        Before measuring, a BusyError says that another process calibrates this machine, and a StorageError
        that its profile cannot be written.
        """
        self._budget.start()
        path = self.path or user_path(self.machine.name)
        storage.ensure_writable(path.parent)
        with storage.exclusive(path.with_suffix(".lock")):
            before = Profile.load_own(path, self.machine) if path.exists() else Profile(self.machine, ())
            journal_path = path.with_suffix(".journal")
            taken_over = read_journal(journal_path)
            self._skip(taken_over.records)
            if self.adds:
                self._skip(before.records)
            try:
                with journal(journal_path, taken_over.matrices) as add:
                    for problem, records in self._measure_papers() if self.suites else self._measure_usual():
                        add(problem, records)
                        self.measured.add(problem, records)
            except KeyboardInterrupt:
                self.interrupted = True
            profile = self.measured.into(taken_over.into(before)).with_bandwidths(self.bandwidths)
            if not profile.records and not self.interrupted:
                raise InputError(
                    f"budget {self.budget_s:g} s: expected time and free memory for one matrix, after "
                    f"compiling the kernels; they are compiled now, so calibrate again, or with more of both"
                )
            profile.save(path)
            journal_path.unlink(missing_ok=True)
        return profile

    @property
    def records(self) -> list[Record]:
        return self.measured.records

    @property
    def used_s(self) -> float:
        return self._budget.used_s

    def _skip(self, records: Iterable[Record]) -> None:
        """Take what these Records hold for measured, but those of kernels that have changed since."""
        for record in (one for one in records if self.device_measured.is_current(one, is_here=True)):
            each = record.candidate
            threads = None if FORMATS.get(each.format).is_serial else each.threads
            setting = each.dtype, threads, each.vectors
            self._taken_over[record.matrix, record.suite, *setting, record.regime].add(each.format)

    def _measure_papers(self) -> Iterator[Measured]:
        """Measure the suites that were asked for, in turn, and the gallery, which tells the errors.

        The gallery comes after half of the time, so that a short budget has both.
        """
        if self._budget.suffices(_STREAMS_S * len(self.targets)):
            self._measure_bandwidths()
        usual = [(target, self.device_measured.suites(target, self.machine)) for target in self.targets]
        gallery = [
            (target, matrix)
            for target, both in usual
            for matrix in chain(*both)
            if matrix.suite == HELD_OUT_SUITE
        ]
        for suite in self.rating_suites:
            yield from suite.measured(self, self.left_s / len(self._suites))
        most = self.device_measured.most_entries(self.machine)
        rounds = [
            [
                (target, matrix)
                for matrix in suite.whole(self.machine, target.threads)
                if matrix.entries <= most
            ]
            for suite in self._suites.values()
            for target in self.targets
        ]
        order = in_turn(rounds)
        yield from self._measure_rounds(order, self.used_s + self.left_s / 2)
        yield from self._measure_rounds(gallery + order)

    def _measure_usual(self) -> Iterator[Measured]:
        suites = [(target, self.device_measured.suites(target, self.machine)) for target in self.targets]
        # No number of threads gets the time before the others.
        needed, optional = (
            in_turn([(target, matrix) for matrix in both[part]] for target, both in suites) for part in (0, 1)
        )
        # The figures and the way to a device need them; forecasts on a processor do not.
        is_short = _STREAMS_S * len(self.targets) <= _STREAMS_SHARE * self.budget_s
        if self.rating or not self.device_measured.shares_host or is_short:
            self._measure_bandwidths()
        if self.rating:
            # A budget that is just enough is enough for the figures only.
            end = max(_RATING_SHARE * self.budget_s, min(self.rating.least_budget_s, self.budget_s))
            yield from self.rating.measured(self, min(end, self._budget.end_s) - self.used_s)
            yield from self._measure_rounds(needed + optional)
            return
        yield from self._measure_rounds(needed)
        if not self.bandwidths and self._budget.suffices(_STREAMS_S * len(self.targets)):
            self._measure_bandwidths()
        yield from self._measure_several([(target, chain(*both)) for target, both in suites])
        yield from self._measure_rounds(optional)
        for suite in self.rating_suites:
            if self.left_s >= _LEAST_REST_S:
                yield from suite.measured(self, self.left_s)

    @property
    def left_s(self) -> float:
        return self._budget.end_s - self.used_s

    def _measure_bandwidths(self) -> None:
        with self._phase("bandwidth"):
            for threads in dict.fromkeys(target.threads for target in self.targets):
                self.on_progress(self.used_s, self.budget_s, "bandwidth")
                self.bandwidths += self.device_measured.measure_bandwidths(self.machine, threads)

    def _measure_several(self, rounds: Sequence[tuple[Target, Iterable[SuiteMatrix]]]) -> Iterator[Measured]:
        """Measure products of PANEL_VECTORS on matrices that three formats read once for all of them."""
        if self._is_short or not self.device_measured.shares_host:
            return
        several = []
        for target, matrices in rounds:
            each = replace(target, vectors=PANEL_VECTORS)
            chosen = [
                matrix
                for matrix in matrices
                if target.vectors == 1 and len(measured_formats(matrix, each)) > 2
            ]
            # Matrices for some formats alone come as often as the others: these seldom suit such formats.
            parts = ([m for m in chosen if (m.kind is None) == is_general] for is_general in (True, False))
            several.append([(each, matrix) for matrix in in_turn(parts)])
        order = in_turn(several)
        with self._phase("compiling"):
            for target in dict.fromkeys(target for target, _ in order):
                self._compile(target)
        yield from self._measure_rounds(order, self.used_s + _SEVERAL_SHARE * self.budget_s)

    def _measure_rounds(
        self, rounds: Sequence[tuple[Target, SuiteMatrix]], end_s: float = inf
    ) -> Iterator[Measured]:
        """Measure the models' matrices in this order until `end_s`, as far as time and memory suffice."""
        if self._is_short:
            rounds = [(target, replace(matrix, in_narrow_storage=False)) for target, matrix in rounds]
        expected = self.used_s + sum(self._budget.estimate_s(matrix, target) for target, matrix in rounds)
        # On a processor, matrices that are made ahead would take the caches and cores of what is measured.
        cores = 1 if self.device_measured.shares_host else self.machine.threads
        ahead = MadeAhead(self.device_measured.most_entries(self.machine), cores)
        for place, (target, matrix) in enumerate(rounds):
            if self.used_s > end_s:
                return
            total = min(self.budget_s, max(self.used_s, expected))
            self.on_progress(min(self.used_s, total), total, matrix.name)
            estimate = self._budget.estimate_s(matrix, target)
            if self._is_due(target, matrix, estimate):  # else compiling would be for nothing
                with self._phase("compiling"):
                    self._compile(target)
            if not self._is_due(target, matrix, estimate):
                expected -= estimate
                continue
            begin, compiling_s = self.used_s, self.phases["compiling"]
            with self._phase("the models' matrices"), suppress(OutOfTime):
                is_new, problem = ahead.take(matrix, self._upcoming(rounds[place + 1 :], end_s))
                yield problem, self._measure(target, problem, matrix)
                self._done.add(self._key(target, matrix))
            took = self.used_s - begin - (self.phases["compiling"] - compiling_s)
            expected += took - estimate
            if is_new:  # the matrices of a batch share its time
                self._budget.learn(estimate, took + ahead.share_s - ahead.batch_s)

    def _upcoming(self, rounds: Sequence[tuple[Target, SuiteMatrix]], end_s: float) -> Iterator[SuiteMatrix]:
        """Yield the matrices that will be measured next, as far as the budget tells now."""
        expected_s = 0.0
        for target, matrix in rounds:
            estimate = self._budget.estimate_s(matrix, target)
            if self.used_s + expected_s > end_s:
                return
            if self._is_due(target, matrix, expected_s + estimate):
                expected_s += estimate
                yield matrix

    def _is_due(self, target: Target, matrix: SuiteMatrix, estimate_s: float) -> bool:
        fits = self._budget.suffices(estimate_s) and matrix.entries <= most_entries_here(target)
        return fits and not self._is_done(target, matrix)

    def _is_done(self, target: Target, matrix: SuiteMatrix) -> bool:
        """Tell whether a matrix was measured; our formats may have been without the libraries."""
        key = self._key(target, matrix)
        formats = self._taken_over[key] | self._taken_over[*key[:3], None, *key[4:]]
        has_libraries = not target.libraries or not formats.isdisjoint(target.libraries)
        return key in self._done or (has_libraries and not formats <= set(LIBRARIES.names()))

    def _key(self, target: Target, matrix: SuiteMatrix) -> tuple[Any, ...]:
        setting = target.dtype, target.threads, target.vectors
        return matrix.problem.specification, matrix.suite, *setting, self.device_measured.regime

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        """Add the seconds of the body to a phase, but for those of phases within it."""
        begin = self.used_s - sum(self.phases.values())
        try:
            yield
        finally:
            self.phases[name] += self.used_s - sum(self.phases.values()) - begin

    def _compile(self, target: Target) -> None:
        """Have the kernels of full storage compiled; those of narrow storage are when a matrix has it."""
        if target in self._ready:
            return
        self._ready.add(target)
        self.on_progress(
            self.used_s, self.budget_s, f"compiling for {target.dtype}, {target.threads} threads"
        )
        registered = self.device_measured.kernels
        known = {name: registered.get(name) for name in registered.names()}
        device, dtype, bits, threads = target.device, target.dtype, target.index_bits, target.threads
        every = [
            Candidate(name, variant, device, dtype, bits, threads, Parameters(size), target.vectors)
            for name, kernels in known.items()
            if _has_product(name, target)
            for variant in kernels.variants_of(dtype)
            for size in kernels.sizes
        ]
        self._compile_in_turn(list(dict.fromkeys(self.device_measured.calibrated(every))))
        for name in target.libraries:  # to load one takes seconds
            with suppress(FormatError, MissingLibraryError):
                FORMATS.get(name).refuse_types(dtype, bits, target.vectors)
                kernel = registered.get(name).variants[0]
                self.device_measured.warm_up(Candidate(name, kernel, device, dtype, bits, threads))
        structure(varied_matrix(1000, 4, "uniform", 1.0, seed=0))

    def _compile_in_turn(self, candidates: Sequence[Candidate]) -> None:
        """Compile kernels, so that this does not pass for their matrix' time, while there is any left."""
        new = [candidate for candidate in candidates if candidate not in self._compiled]
        for candidate in compiled_in_turn(new, self.machine.threads):
            self._compiled.add(candidate)
            if not self._budget.suffices(0.0):
                return  # nothing will be measured with it

    def _measure(self, target: Target, problem: Problem, matrix: SuiteMatrix) -> list[Record]:
        try:
            # What is measured on a matrix, which is made for it.
            chosen = whole_matrix(problem.structure, target, self.machine).candidates
            formats = measured_formats(matrix, target)
            wanted = [
                each
                for each in self.device_measured.calibrated(chosen)
                if each.format in formats
                and (
                    matrix.in_narrow_storage
                    or each.format in target.libraries
                    or NARROW_PARAMETERS.isdisjoint(each.parameters)
                )
            ]
            with self._phase("compiling"):
                self._compile_in_turn(wanted)
            # Energy takes longer than time: of matrices as users have them alone, in what was asked for.
            is_metered = matrix.suite == HELD_OUT_SUITE and target in self.targets
            meter, idle_w = self._metered if is_metered else (None, None)
            # What watches the conditions of products of so many threads, the same for the whole run.
            if target.threads not in self._monitors:
                self._monitors[target.threads] = ConditionMonitor(
                    self.device_measured.references(self.machine, target.threads)
                )
            instruments = Instruments(self.device_measured, meter, self._monitors[target.threads], idle_w)
            return measure_candidates(
                problem, matrix.suite, wanted, self._effort, instruments, self._budget.watch
            )
        except (OutOfTime, DeviceError):
            raise
        except MatrixSizeError as error:  # another one may fit
            self.notes.append(f"{matrix.name}: {error}")
        except Exception as error:
            if self.on_failure is None:
                raise
            self.on_failure(matrix.name, error)
        return []

    @cached_property
    def _metered(self) -> tuple[Meter | None, float | None]:
        """The device's meter, and the idle power that it read before the first product with energy."""
        meter = self.device_measured.meter()
        return meter, None if meter is None else idle_power_w(meter)


def measured_formats(matrix: SuiteMatrix, target: Target) -> list[str]:
    """Return the formats that a calibration measures on a benchmark matrix."""
    names = target.open_formats
    is_wanted = {name: matrix.takes(name, FORMATS.get(name).benchmark_kinds) for name in names}
    return [name for name in names if is_wanted[name] and _has_product(name, target)]


def _with_own_libraries(target: Target, targets: Sequence[Target]) -> Target:
    """Return a target without the serial libraries, unless it is the first with other threads, or none."""
    alike = [other for other in targets if replace(other, threads=target.threads) == target]
    own = (name for name in target.libraries if target == alike[0] or not FORMATS.get(name).is_serial)
    return replace(target, libraries=tuple(own))


def _has_product(format_name: str, target: Target) -> bool:
    """Tell whether a product is not several ones, one after another: their time is known."""
    kernels = DEVICES.get(target.device).kernels.get(format_name)
    return target.vectors == 1 or kernels.passes(target.vectors) < target.vectors


def most_entries_here(target: Target) -> float:
    """Return the entries of the largest matrix that there is memory for."""
    return MEMORY_SHARE * free_bytes() / (_VALUES_AN_ENTRY * target.value_bytes + _MORE_BYTES)


@dataclass
class MadeAhead:
    """Matrices with their Structures, made several at once, of at most so many entries together."""

    most_entries: float
    cores: int
    #: Seconds of the batch that the last matrix began, 0 without one, and what each of its matrices has of
    #: those of the last batch.
    batch_s: float = 0.0
    share_s: float = 0.0
    _made: dict[str, Problem] = field(default_factory=dict)
    _taken: Problem | None = None

    def take(self, matrix: SuiteMatrix, upcoming: Iterable[SuiteMatrix]) -> tuple[bool, Problem]:
        """Return the problem of a matrix, and whether it is another one than the last time.

        If need be it is made, with as many others as there are cores. One that cannot be made is returned
        unmade: whoever needs it learns why.
        """
        name = matrix.problem.specification
        if self._taken is not None and self._taken.specification == name:
            return False, self._taken
        self._taken, self.batch_s = None, 0.0  # the last one is let go before others are made
        if name not in self._made:
            chosen, entries = {name: matrix.problem}, matrix.entries
            for other in upcoming:  # the same one comes again in another type
                entries += other.entries * (other.problem.specification not in chosen)
                if len(chosen) >= self.cores or entries > self.most_entries:
                    break
                chosen[other.problem.specification] = other.problem
            start_s = perf_counter()
            with ThreadPoolExecutor(len(chosen)) as pool:
                self._made = dict(zip(chosen, pool.map(_made, chosen.values()), strict=True))
            self.batch_s = perf_counter() - start_s
            self.share_s = self.batch_s / len(chosen)
        self._taken = self._made.pop(name)
        return True, self._taken


def _made(problem: Problem) -> Problem:
    made = problem.released()
    with suppress(Exception):  # raised again where the matrix is used
        _ = made.structure
    return made
