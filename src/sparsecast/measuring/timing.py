"""Times of callables on a machine that drifts.

One sample is (T_beta - T_alpha) / (beta - alpha), the time of beta calls less that of alpha calls, so that
what a run of calls costs once cancels (Guo, Wang, Chen 2014, section 3.3). The callables are sampled in
turn, so that a slow minute of the machine slows them all alike, and a canary, a fixed stream read, is timed
beside every sample: where the canary is slow the sample is taken again.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

import numpy as np

#: Bytes the canary reads: more than a core's own caches hold, little enough to take a fraction of a sample.
CANARY_BYTES = 4 << 20

#: A canary slower than this many times its usual time marks a slow moment of the machine.
SLOW_CANARY = 1.3

#: A sample is taken again at most this often; on a machine that stays slow the last one is kept.
MAX_RETAKES = 3

Call = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Effort:
    """How long to measure.

    Attributes
    ----------
    samples : int
        Samples of each callable.
    sample_s : float
        Seconds that the beta - alpha calls of one sample should take together.
    """

    samples: int = 11
    sample_s: float = 0.01


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
        Their median.
    spread : float
        Interquartile range over the median.
    noise : float
        Relative difference between the medians of the earlier and of the later half of the samples: how
        well a repeated measurement of the same thing agrees.
    retaken : int
        Samples thrown away beside a slow canary.
    """

    samples_s: tuple[float, ...]
    time_s: float
    spread: float
    noise: float
    retaken: int

    @classmethod
    def of(cls, samples_s: tuple[float, ...], retaken: int = 0) -> Timing:
        """Summarise samples in the order taken."""
        time_s = statistics.median(samples_s)
        lower, upper = np.quantile(samples_s, (0.25, 0.75))
        half = len(samples_s) // 2
        noise = 0.0
        if half:
            early, late = statistics.median(samples_s[:half]), statistics.median(samples_s[-half:])
            noise = abs(late - early) / time_s
        return cls(samples_s, time_s, float(upper - lower) / time_s, noise, retaken)


class Clock(Protocol):
    """Where time is read: the host's clock, or one that sees when a device works."""

    def seconds(self, call: Call, times: int) -> float:
        """Return the seconds that so many calls take together."""
        ...

    def memory_read(self) -> Call:
        """Return a fixed stream read on what is timed."""
        ...


class HostClock:
    """The clock of the processor, for calls that return when their work is done."""

    def seconds(self, call: Call, times: int) -> float:
        """Return the seconds that so many calls take together."""
        start = perf_counter()
        for _ in range(times):
            call()
        return perf_counter() - start

    def memory_read(self) -> Call:
        """Return a read of CANARY_BYTES."""
        return np.ones(CANARY_BYTES // 8).sum


class Canary:
    """A fixed stream read that tells a slow moment of the machine from a slow callable.

    Attributes
    ----------
    usual_s : float
        Median of its readings so far.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or HostClock()
        self._call = self._clock.memory_read()
        self._readings: list[float] = []
        for _ in range(15):
            self.read()

    def read(self) -> float:
        """Read the stream once and return the seconds it took."""
        seconds = self._clock.seconds(self._call, 1)
        self._readings.append(seconds)
        return seconds

    @property
    def usual_s(self) -> float:
        """Median of the last hundred readings."""
        return statistics.median(self._readings[-100:])

    def is_slow(self, seconds: float) -> bool:
        """Tell whether a reading marks a slow moment."""
        return seconds > SLOW_CANARY * self.usual_s


def measure(
    calls: Mapping[str, Call],
    effort: Effort = DEFAULT_EFFORT,
    on_sample: Callable[[], None] = lambda: None,
    clock: Clock | None = None,
) -> dict[str, Timing]:
    """Time every callable, sampling them in turn.

    Parameters
    ----------
    calls : mapping of str to callable
        Zero-argument callables, already warmed up as their users will find them (compiled, checked).
    effort : Effort
        Samples and seconds of each.
    on_sample : callable
        Called after every sample that is kept, for progress.
    clock : Clock, optional
        The host's by default.

    Returns
    -------
    dict of str to Timing
        In the order of `calls`.
    """
    clock = clock or HostClock()
    canary = Canary(clock)
    counts = {name: _repetitions(call, effort.sample_s, clock) for name, call in calls.items()}
    samples: dict[str, list[float]] = {name: [] for name in calls}
    retaken = dict.fromkeys(calls, 0)
    for _ in range(effort.samples):
        for name, call in calls.items():
            before = canary.read()
            sample = _sample(call, *counts[name], clock)
            for _ in range(MAX_RETAKES):
                after = canary.read()
                if sample > 0 and not canary.is_slow(max(before, after)):
                    break
                retaken[name] += 1
                before, sample = after, _sample(call, *counts[name], clock)
            # On a machine so disturbed that more calls keep taking less time, a plain mean bounds the time.
            beta = counts[name][1]
            samples[name].append(sample if sample > 0 else clock.seconds(call, beta) / beta)
            on_sample()
    return {name: Timing.of(tuple(values), retaken[name]) for name, values in samples.items()}


def _repetitions(call: Call, sample_s: float, clock: Clock) -> tuple[int, int]:
    """Return alpha and beta such that beta - alpha calls take about `sample_s`."""
    call()  # untimed: a first call may pay for memory and threads that later ones find ready
    calls, seconds = 1, clock.seconds(call, 1)
    while seconds < sample_s / 4 and calls < 1 << 20:
        calls *= 2
        seconds = clock.seconds(call, calls)
    difference = max(1, math.ceil(sample_s * calls / seconds))
    alpha = max(1, difference // 8)
    return alpha, alpha + difference


def _sample(call: Call, alpha: int, beta: int, clock: Clock) -> float:
    call()  # untimed: otherwise the first run alone would pay for the caches that others have filled
    return (clock.seconds(call, beta) - clock.seconds(call, alpha)) / (beta - alpha)
