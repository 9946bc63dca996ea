"""Times of callables on a machine that drifts and runs other programs.

A disturbance makes a sample longer, hardly ever shorter, so many short samples are taken and the time is a
low quantile of them (Chen and Revels 2016, "Robust benchmarking in noisy environments"): a sample shorter
than the time slices of other programs meets none of them. The callables are sampled in turn, so that a slow
minute of the machine slows all of them alike. If the speed of the cores is known, samples wait shortly for
full speed, and those at full speed count; the others count only if those are few.

One sample is (T_beta - T_alpha) / (beta - alpha), the time of beta calls minus that of alpha calls, so that
the constant cost of a run cancels (Guo, Wang, Chen 2014, section 3.3). T_alpha is the low quantile of the
runs of alpha calls: a single disturbed one would make the difference too short.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

if TYPE_CHECKING:
    from sparsecast.measuring.core_speed import CoreSpeed  # it imports Numba, which a forecast does without

#: The quantile of the samples that is the time (decision 19).
LOW_SHARE = 0.1

#: Samples of one callable in a row, after an untimed call. More turns would follow a drift more closely, but
#: a large last cache keeps an array only after some passes over it (decision 71).
SAMPLES_A_TURN = 8

#: Least number of samples, however long they take.
_LEAST_SAMPLES = 3

#: Share of the requested samples that should be at full speed; otherwise as many again are taken.
_FULL_SHARE = 0.125

#: Runs to find the number of calls in a sample; fewer if they take longer than this many samples.
_TRIALS, _TRIAL_SAMPLES = 3, 10

#: Resamplings for the deviation of a Speedup, which then is known to 3 %: 1 over the root of 2 x 500.
_RESAMPLINGS = 500

Call = Callable[[], object]

#: What tells callables apart.
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Effort:
    """How long to measure each callable."""

    samples: int = 80
    sample_s: float = 0.0005  # seconds of the beta - alpha calls of one sample together, at least one call
    #: Seconds after which a callable gets no more samples, once it has three: it is long, or its threads wait
    #: for cores.
    most_s: float = 0.5
    wait_s: float = 0.4  # seconds per callable that all samples together may wait for full speed of the cores


#: Effort of the command `measure`.
DEFAULT_EFFORT = Effort()


@dataclass(frozen=True, slots=True)
class Timing:
    """The measured time of one callable."""

    samples_s: tuple[float, ...]  # seconds per call, in the order taken
    time_s: float  # their low quantile: a tenth of them is shorter
    #: spread, noise: interquartile range over `time_s`, and relative difference between the low quantiles of
    #: the earlier and of the later half: how well a repeated measurement agrees. None for a single sample.
    spread: float | None
    noise: float | None
    #: Share of all samples at less than full speed of the cores, 1.0 if the others were too few to count;
    #: None if the speed was not measured.
    slow_share: float | None = None

    @classmethod
    def of(cls, samples_s: tuple[float, ...], is_full: Sequence[bool] | None = None) -> Timing:
        """Summarise samples in the order taken; only those at full speed, if they suffice."""
        if is_full is not None:
            fast = tuple(compress(samples_s, is_full))
            if len(fast) < _LEAST_SAMPLES:
                return replace(cls.of(samples_s), slow_share=1.0)
            return replace(cls.of(fast), samples_s=samples_s, slow_share=1.0 - len(fast) / len(samples_s))
        time_s = low(samples_s)
        half = len(samples_s) // 2
        if not half:
            return cls(samples_s, time_s, None, None)
        lower, upper = np.quantile(samples_s, (0.25, 0.75))
        noise = abs(low(samples_s[-half:]) - low(samples_s[:half])) / time_s
        return cls(samples_s, time_s, float(upper - lower) / time_s, noise)


def low(samples_s: Sequence[float]) -> float:
    """Return the low quantile of times: the undisturbed time."""
    return float(np.quantile(samples_s, LOW_SHARE))


@dataclass(frozen=True, slots=True)
class Speedup:
    """How many times as fast one callable is as another one that was sampled in turn with it."""

    factor: float  # time of the other over that of the one
    #: Standard deviation of `factor`, as the samples tell it: the turns that both took part in are drawn with
    #: replacement, so that what slows a whole turn stays in it (Efron 1979, "Bootstrap methods: another look
    #: at the jackknife"). None below three turns.
    deviation: float | None

    @classmethod
    def of(cls, one: Any, other: Any) -> Speedup:
        """Compare two Timings of one `measure`, or the Records of such."""
        factor = other.time_s / one.time_s
        turns = min(len(one.samples_s), len(other.samples_s)) // SAMPLES_A_TURN
        if turns < _LEAST_SAMPLES:
            return cls(factor, None)
        drawn = np.random.default_rng(0).integers(turns, size=(_RESAMPLINGS, turns))
        lows = []
        for timing in (one, other):
            of_turns = np.reshape(timing.samples_s[: turns * SAMPLES_A_TURN], (turns, SAMPLES_A_TURN))
            lows.append(np.quantile(of_turns[drawn].reshape(_RESAMPLINGS, -1), LOW_SHARE, axis=1))
        return cls(factor, float(np.std(lows[1] / lows[0])))

    def __str__(self) -> str:
        deviation = "" if self.deviation is None else f" ± {self.deviation:.2f}"
        return f"{self.factor:.2f}{deviation} times as fast"


@dataclass(frozen=True, slots=True)
class Lingering:
    """A call whose threads stay awake for some seconds after it, on the cores of what is measured next."""

    call: Call
    linger_s: float

    def __call__(self) -> object:
        return self.call()


class Clock(Protocol):
    """The host's clock, or one that times the work of a device."""

    @property
    def least_calls(self) -> int:
        """Calls of the shortest run, whose time has the constant cost of a run.

        0 if calls return when their work is done, 1 if they queue it.
        """
        ...

    def seconds(self, call: Call, times: int) -> float:
        """Return the seconds of `times` calls together."""
        ...


class HostClock:
    """The clock of the processor, for calls that return when their work is done."""

    least_calls = 0

    def seconds(self, call: Call, times: int) -> float:
        start = perf_counter()
        for _ in range(times):
            call()
        return perf_counter() - start


def measure(
    calls: Mapping[Key, Call],
    effort: Effort = DEFAULT_EFFORT,
    on_sample: Callable[[], None] = lambda: None,
    clock: Clock | None = None,
    cores: CoreSpeed | None = None,
) -> dict[Key, Timing]:
    """Return the Timing of every callable by its key, in order, from samples taken in turn.

    The `calls` are compiled and warmed up. `on_sample` is called for progress, as often as `effort` has
    samples, for each of them. Without the speed of the `cores`, all samples count.
    """
    clock = clock or HostClock()
    patience = _Patience(cores, cores.patience * effort.wait_s * len(calls)) if cores else None
    series = {name: _Series(call, effort, clock, patience) for name, call in calls.items()}
    linger_s = 0.0
    firsts = range(0, effort.samples, SAMPLES_A_TURN)
    turns = [min(SAMPLES_A_TURN, effort.samples - first) for first in firsts]
    for wanted in turns:
        for series_of_call in series.values():
            linger_s = series_of_call.take(wanted, linger_s)
            for _ in range(wanted):
                on_sample()
    for wanted in turns:
        for series_of_call in series.values():
            if series_of_call.is_slow:
                linger_s = series_of_call.take(wanted, linger_s)
    return {name: series_of_call.timing() for name, series_of_call in series.items()}


@dataclass
class _Patience:
    """The speed of the cores, and the remaining seconds that all series together may wait for it."""

    cores: CoreSpeed
    left_s: float


@dataclass
class _Series:
    """The samples of one callable."""

    call: Call
    effort: Effort
    clock: Clock
    patience: _Patience | None = None
    _alpha_s: list[float] = field(default_factory=list)
    _beta_s: list[float] = field(default_factory=list)
    _is_full: list[bool] = field(default_factory=list)
    _used_s: float = 0.0

    def __post_init__(self) -> None:
        self.alpha = self.clock.least_calls
        self.beta = self.alpha + _calls_of(self.call, self.effort.sample_s, self.clock)

    @property
    def is_slow(self) -> bool:
        return self.patience is not None and sum(self._is_full) < _FULL_SHARE * self.effort.samples

    def take(self, samples: int, after_s: float = 0.0) -> float:
        """Take `samples` samples in a row, fewer if the time is up; return how long their threads linger.

        For `after_s` seconds before, calls are not timed: the threads of another call are still awake. If the
        speed of the cores is known, a sample waits for it to be full, and it must not be slow after; and each
        thread must have a core meanwhile. Just after, another program may have taken one: that tells nothing.
        """
        end_s = perf_counter() + after_s
        while perf_counter() < end_s:
            self.call()
        start, waited_s = perf_counter(), 0.0
        for number in range(samples):
            used_s, most_s = self._used_s + perf_counter() - start - waited_s, self.effort.most_s
            if self.patience and sum(self._is_full) < _LEAST_SAMPLES:  # too few of them count so far
                most_s *= 1 + self.patience.cores.patience
            if used_s > most_s and len(self._beta_s) >= _LEAST_SAMPLES:
                break
            if number == 0:
                self.call()  # untimed: otherwise the first run would pay for the caches that others filled
                self._alpha_s.append(self.clock.seconds(self.call, self.alpha))
            if self.patience is None:
                self._beta_s.append(self.clock.seconds(self.call, self.beta))
                continue
            cores = self.patience.cores
            was_full, took_s = cores.wait(self.patience.left_s)
            self.patience.left_s -= took_s
            waited_s += took_s
            seconds, had_cores = cores.watch(lambda: self.clock.seconds(self.call, self.beta))
            self._beta_s.append(seconds)
            self._is_full.append(was_full and had_cores and not cores.is_slow())
        self._used_s += perf_counter() - start - waited_s
        return self.call.linger_s if isinstance(self.call, Lingering) else 0.0

    def timing(self) -> Timing:
        alpha, alpha_s = self.alpha, low(self._alpha_s)
        if alpha_s >= min(self._beta_s):
            alpha, alpha_s = 0, 0.0
        samples_s = tuple((seconds - alpha_s) / (self.beta - alpha) for seconds in self._beta_s)
        return Timing.of(samples_s, self._is_full if self.patience else None)


def _calls_of(call: Call, sample_s: float, clock: Clock) -> int:
    """Return how many undisturbed calls take about `sample_s`: the fastest of some runs counts."""
    call()  # untimed: a first call may pay for memory and threads that later ones find ready
    calls = 1
    while True:
        seconds = used_s = clock.seconds(call, calls)
        for _ in range(_TRIALS - 1):
            if used_s > _TRIAL_SAMPLES * sample_s:
                break
            again = clock.seconds(call, calls)
            seconds, used_s = min(seconds, again), used_s + again
        if seconds >= sample_s / 4 or calls >= 1 << 20:
            return max(1, math.ceil(sample_s * calls / seconds)) if seconds > 0 else calls
        calls *= 2
