"""Times of what ranks do together: until the last one is done, the same on all ranks.

All that `sparsecast.measuring.timing` decides follows from times, so it decides alike on all ranks where they
have the same times: those of the slowest rank.

Two loops are timed for the speed of arithmetic, and that of memory.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sparsecast.measuring.core_speed import CoreSpeed, reading
from sparsecast.measuring.timing import Call, Clock, Effort, Key, Timing, measure
from sparsecast.system.jit import njit

#: Samples that no measurement goes below, however long they take.
_LEAST_SAMPLES = 5

#: Seconds that the samples of one call should take together, without waits for full speed.
MOST_S = 0.5


@dataclass(frozen=True)
class TogetherClock:
    """Times calls that all ranks make, after a barrier, which does not count.

    That is one for a run of calls, for what is called again and again, as products in a solver are. If it
    `separates`, there is one before each call: a root that is done early would else begin the next call
    before the others are done with this one.
    """

    comm: Any
    separates: bool = False
    least_calls: ClassVar[int] = 0

    def seconds(self, call: Call, times: int) -> float:
        """Return the seconds that the calls take, until the last rank is done."""
        runs, calls = (times, 1) if self.separates else (1, times)
        seconds = 0.0
        for _ in range(runs):
            self.comm.Barrier()
            start = perf_counter()
            for _ in range(calls):
                call()
            seconds += perf_counter() - start
        return slowest(self.comm, seconds)


def slowest(comm: Any, seconds: float) -> float:
    """Return the longest time of all ranks, on each."""
    every = np.empty(comm.size)
    comm.Allgather(np.array([seconds]), every)
    return float(every.max())


def cores_together(comm: Any) -> CoreSpeed:
    """Return what tells whether all cores of the ranks run at full speed at once; collective."""
    alone = reading(threads=1)
    return CoreSpeed(lambda: slowest(comm, alone()), clock_s=lambda: slowest(comm, perf_counter()))


def measure_together(
    calls: Mapping[Key, Call],
    clock: Clock,
    wait_s: float,
    cores: CoreSpeed | None,
    samples: int = 40,
) -> dict[Key, Timing]:
    """Return the Timing of calls that all ranks make together, sampled in turn; the same on all ranks.

    Samples may wait for full speed for `wait_s` seconds per call. `cores` is that of `cores_together`; None
    where ranks share cores, and no core is ever their own. There are fewer than `samples` where calls are
    long.
    """
    for call in calls.values():
        call()  # a first call may pay for memory and connections that later ones find ready
    one_s = max(clock.seconds(call, 1) for call in calls.values())
    least = Effort().sample_s
    affordable = math.ceil(MOST_S / max(one_s, least))
    # No limit in seconds: ranks would reach it at different samples.
    effort = Effort(max(_LEAST_SAMPLES, min(samples, affordable)), least, math.inf, wait_s)
    return measure(calls, effort, clock=clock, cores=cores)


@njit(nogil=True, cache=True, fastmath={"contract"})
def chains(count: int, factor: float) -> float:
    """Do `count` multiplications and additions, in eight chains that do not wait for each other."""
    a = b = c = d = e = f = g = h = 1.0
    for _ in range(count // 8):
        a = a * factor + 1.0
        b = b * factor + 2.0
        c = c * factor + 3.0
        d = d * factor + 4.0
        e = e * factor + 5.0
        f = f * factor + 6.0
        g = g * factor + 7.0
        h = h * factor + 8.0
    return a + b + c + d + e + f + g + h


@njit(nogil=True, cache=True, fastmath={"contract"})
def triad(a: NDArray[Any], b: NDArray[Any], c: NDArray[Any], factor: float) -> None:
    """Set a to b + factor c (McCalpin's STREAM)."""
    for i in range(len(a)):
        a[i] = b[i] + factor * c[i]
