"""Times of callables on a machine that drifts and runs other programs.

What disturbs a sample makes it longer, hardly ever shorter, so many short samples are taken and the time is
a low quantile of them (Chen and Revels 2016, "Robust benchmarking in noisy environments"): a sample that is
shorter than the turns of the other programs meets none of them. The callables are sampled in turn, so that a
slow minute of the machine slows them all alike. Where the speed of the cores can be told, a sample is taken
after a short wait for full speed, and those at full speed count; the others count only where those are few.

One sample is (T_beta - T_alpha) / (beta - alpha), the time of beta calls less that of alpha calls, so that
what a run of calls costs once cancels (Guo, Wang, Chen 2014, section 3.3). T_alpha is the low quantile of the
runs of alpha calls: with a single disturbed one the difference would become too short.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from sparsecast.measuring.core_speed import CoreSpeed  # it imports Numba, which a forecast does without

#: Which of the samples is the time: a tenth of them is shorter. It is compared with others by
#: `python benchmarks/run.py busy-machine`.
LOW_SHARE = 0.1

#: Samples of one callable in a row, after a call that is not timed. More turns would follow a drift more
#: closely, and time fewer of the calls.
_SAMPLES_A_TURN = 4

#: Fewer samples are not taken, however long they last.
_LEAST_SAMPLES = 3

#: Samples of a callable, of those asked for, that should be at full speed; else as many again are taken.
_FULL_SHARE = 0.125

#: Runs that tell the number of calls in a sample, fewer where they take longer than so many samples.
_TRIALS, _TRIAL_SAMPLES = 3, 10

Call = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Effort:
    """How long to measure each callable.

    Attributes
    ----------
    sample_s : float
        Seconds that the beta - alpha calls of one sample should take together, at least one call.
    most_s : float
        Seconds after which a callable gets no more samples, once it has three: it is long, or its threads
        wait for cores that other programs use.
    wait_s : float
        Seconds for each callable that the samples of all together may wait for full speed of the cores.
    """

    samples: int = 80
    sample_s: float = 0.0005
    most_s: float = 0.5
    wait_s: float = 0.4


#: What a measurement for its own sake takes.
DEFAULT_EFFORT = Effort()


@dataclass(frozen=True, slots=True)
class Timing:
    """What was measured of one callable.

    Attributes
    ----------
    samples_s : tuple of float
        Seconds a call, in the order taken.
    time_s : float
        Their low quantile: a tenth of them is shorter.
    spread, noise : float or None
        Interquartile range over `time_s`, and relative difference between the low quantiles of the earlier
        and of the later half: how well a repeated measurement agrees. None of a single sample.
    slow_share : float or None
        Share of all samples that were taken while the cores were slower than they can be, 1.0 where the
        others were too few to count; None where that was not looked at.
    """

    samples_s: tuple[float, ...]
    time_s: float
    spread: float | None
    noise: float | None
    slow_share: float | None = None

    @classmethod
    def of(cls, samples_s: tuple[float, ...], is_full: Sequence[bool] | None = None) -> Timing:
        """Summarise samples in the order taken; those at full speed alone, where they suffice."""
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
    """Return the low quantile of times: the time where nothing disturbs."""
    return float(np.quantile(samples_s, LOW_SHARE))


class Clock(Protocol):
    """Where time is read: the host's clock, or one that sees when a device works."""

    @property
    def least_calls(self) -> int:
        """Calls of the shortest run whose time holds all that a run costs once.

        0 where calls return when their work is done, 1 where they queue it.
        """
        ...

    def seconds(self, call: Call, times: int) -> float:
        """Return the seconds that so many calls take together."""
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
    calls: Mapping[str, Call],
    effort: Effort = DEFAULT_EFFORT,
    on_sample: Callable[[], None] = lambda: None,
    clock: Clock | None = None,
    cores: CoreSpeed | None = None,
) -> dict[str, Timing]:
    """Return the Timing of every callable by name, in their order, from samples taken in turn.

    Parameters
    ----------
    calls : mapping of str to callable
        Already warmed up as their users will find them (compiled, checked).
    on_sample : callable
        Called as often as `effort` has samples of each callable, for progress.
    clock : Clock, optional
        The host's by default.
    cores : CoreSpeed, optional
        Tells whether the cores run at full speed; without it, all samples count.
    """
    clock = clock or HostClock()
    patience = _Patience(cores, effort.wait_s * len(calls)) if cores else None
    series = {name: _Series(call, effort, clock, patience) for name, call in calls.items()}
    for first in range(0, effort.samples, _SAMPLES_A_TURN):
        wanted = min(_SAMPLES_A_TURN, effort.samples - first)
        for each in series.values():
            each.take(wanted)
            for _ in range(wanted):
                on_sample()
    for _ in range(0, effort.samples, _SAMPLES_A_TURN):
        for each in series.values():
            if each.is_slow:
                each.take(_SAMPLES_A_TURN)
    return {name: each.timing() for name, each in series.items()}


@dataclass
class _Patience:
    """The speed of the cores, and the seconds that all samples together may still wait for it."""

    cores: CoreSpeed
    left_s: float

    def wait(self) -> tuple[bool, float]:
        is_full, used_s = self.cores.wait(self.left_s)
        self.left_s -= used_s
        return is_full, used_s


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

    def take(self, samples: int) -> None:
        """Take so many samples in a row, fewer where there is no time left for them."""
        start, waited_s = perf_counter(), 0.0
        for number in range(samples):
            used_s = self._used_s + perf_counter() - start - waited_s
            if used_s > self.effort.most_s and len(self._beta_s) >= _LEAST_SAMPLES:
                break
            if number == 0:
                self.call()  # untimed: otherwise the first run would pay for the caches that others filled
                self._alpha_s.append(self.clock.seconds(self.call, self.alpha))
            waited_s += self._sample()
        self._used_s += perf_counter() - start - waited_s

    def _sample(self) -> float:
        """Take one sample and return the seconds that it waited.

        Where the speed of the cores is told, it must be full before and after.
        """
        if self.patience is None:
            self._beta_s.append(self.clock.seconds(self.call, self.beta))
            return 0.0
        before, waited_s = self.patience.wait()
        self._beta_s.append(self.clock.seconds(self.call, self.beta))
        self._is_full.append(before and self.patience.cores.is_full())
        return waited_s

    def timing(self) -> Timing:
        alpha, alpha_s = self.alpha, low(self._alpha_s)
        if alpha_s >= min(self._beta_s):
            alpha, alpha_s = 0, 0.0
        samples_s = tuple((seconds - alpha_s) / (self.beta - alpha) for seconds in self._beta_s)
        return Timing.of(samples_s, self._is_full if self.patience else None)


def _calls_of(call: Call, sample_s: float, clock: Clock) -> int:
    """Return how many calls take about `sample_s` undisturbed: the fastest of some runs counts."""
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
