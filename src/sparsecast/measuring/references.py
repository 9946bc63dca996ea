"""Reference products: the same small task, repeated; its time shows the present speed of the machine.

The speed of a machine changes by a factor within minutes if others share its caches and its memory. One
reference has its data in a core's own cache, one in the last cache: they read words in order and gather from
a small vector. One reads memory in order and gathers nothing: it is bound by bandwidth, as large products
are. A single reading is as noisy as the time that it should correct: within a second, memory changes as much
as within an hour. So the readings of a whole calibration are compared with those of now.

The sequential read of memory is the upper limit of the bandwidth of a product, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from sparsecast.measuring.core_speed import CoreSpeed
from sparsecast.measuring.timing import Call, Clock, HostClock, low
from sparsecast.records import MEMORY
from sparsecast.system.jit import njit
from sparsecast.system.numba_pool import each_part, share
from sparsecast.system.parallel import equal_parts

#: Seconds between two readings of a monitor.
EVERY_S = 3.0

#: Greatest bytes of a reference in the last cache, and least and greatest ones in memory, which take 0.1 s to
#: fill; a virtual machine has only a part of larger caches.
_MOST_L3_BYTES, _LEAST_MEMORY_BYTES, _MOST_MEMORY_BYTES = 32 << 20, 64 << 20, 256 << 20

#: The reference in the last cache fills this part of it. A virtual machine may have less than half of it, and
#: then each new array takes another time, up to twice as long (decision 27).
_L3_PART = 0.25

#: The level of a reference in a third cache.
LAST_CACHE = "last cache"

#: Caches of most processors, if the system does not report them.
_USUAL_L2_BYTES, _USUAL_L3_BYTES = 1 << 20, 32 << 20

#: Greatest bytes that each thread reads in one call, the next bytes every time: a tenth of a millisecond.
#: Longer calls would all be interrupted by other programs, and the machine would seem slow.
_SLICE_BYTES = 1 << 20

#: Calls of one reading in the core's own cache and at most in memory, where a call reads all data as in the
#: last cache all calls together do.
_CACHED_CALLS, _MEMORY_CALLS = 15, 8

#: Seconds after which a reading fetches no more data; it ends after twice this time.
_MOST_S = 0.01

#: Greatest drift. A machine drifts by a factor of two to four; beyond this one, threads waited for cores.
MOST_DRIFT = 4.0

#: Least change, between the readings that are the nearest: where smaller ones were followed, forecasts became
#: worse (decision 27).
LEAST_DRIFT = 2.0

#: The shares of the readings of one reference between which the others are.
_ENDS = (0.05, 0.5, 0.95)

#: Words of the vector that is gathered from, 64 KiB, and of the pattern of places in it.
_GATHERED, _PATTERN = 1 << 13, 1 << 15


@dataclass(frozen=True, slots=True)
class Reference:
    """A product that is timed repeatedly.

    One reading times `calls` calls, after `warm` untimed ones that fetch the data into the cache.
    """

    call: Call
    calls: int
    warm: int

    def seconds(self, clock: Clock) -> float:
        """Return the seconds of a call, the low quantile of one reading.

        A reading ends early if each call waits for a core: a forecast must not wait for it.
        """
        used_s = 0.0
        for _ in range(self.warm):
            used_s += clock.seconds(self.call, 1)
            if used_s > _MOST_S:
                break
        taken: list[float] = []
        while not taken or (len(taken) < self.calls and used_s < 2 * _MOST_S):
            taken.append(clock.seconds(self.call, 1))
            used_s += taken[-1]
        return low(taken)


@dataclass(frozen=True, slots=True)
class Pooled:
    """Readings of one reference."""

    time_s: float  # their median
    range_s: tuple[float, float] | None  # between which nine tenths are; None for a single reading

    @property
    def variance(self) -> float:
        """Variance of the logarithms of normal readings of this range, which has to be known."""
        assert self.range_s is not None
        return (math.log(self.range_s[1] / self.range_s[0]) / 3.29) ** 2

    @classmethod
    def of(cls, readings_s: Sequence[float]) -> Pooled:
        """Summarise readings, at least one."""
        low_s, middle_s, high_s = (float(reading_s) for reading_s in np.quantile(readings_s, _ENDS))
        return cls(middle_s, (low_s, high_s) if len(readings_s) > 1 else None)


def reference_bytes(l2_bytes: int | None, l3_bytes: int | None) -> dict[str, int]:
    """Return the bytes of each reference: half of the core's cache, a quarter and three times the last one.

    A profile has seconds of these alone: whoever changes the sizes of a level gives it another name.

    The caches are those of all threads together; None if unknown. Without a third level, `l3_bytes` is 0 and
    the second level is the last.
    """
    l2 = _USUAL_L2_BYTES if l2_bytes is None else l2_bytes
    l3 = _USUAL_L3_BYTES if l3_bytes is None else l3_bytes
    sizes = {"L2": l2 // 2}
    if l3 > 2 * l2:
        sizes[LAST_CACHE] = max(2 * l2, min(int(_L3_PART * l3), _MOST_L3_BYTES))
    memory = min(max(3 * max(l2, l3), _LEAST_MEMORY_BYTES), _MOST_MEMORY_BYTES)
    return sizes | {MEMORY: memory}


def references(sizes: Mapping[str, int], threads: int) -> dict[str, Reference]:
    """Return the references of these sizes, read by `threads` threads, with their data written."""
    made = {}
    for level, size in sizes.items():
        if level == MEMORY:
            made[level] = Reference(memory_read(size, threads), _MEMORY_CALLS, warm=0)
            continue
        # Places to gather from: copies of a pattern, since drawing all takes longer than a forecast.
        pattern = np.random.default_rng(0).integers(0, _GATHERED, _PATTERN, dtype=np.uint64)
        words = np.resize(pattern, max(1, size // 8))
        length = words_a_call(size, threads)
        once = len(words) // length
        made[level] = Reference(_reader(words, length, threads), max(once, _CACHED_CALLS), warm=once)
    return made


def words_a_call(size: int, threads: int) -> int:
    """Return the words of 8 bytes that one call of a reference of `size` bytes reads."""
    return min(max(1, size // 8), threads * _SLICE_BYTES // 8)


class ReferenceMonitor:
    """Times references, given by level, from time to time.

    `clock` times them, by default the host's. `clock_s` returns the seconds since some moment. A reading
    waits a moment for full speed of `cores`; readings at slow cores are left out, since samples wait for full
    speed too; those of memory count at slow cores as well, if they are there. `readings_s` holds the
    seconds of all readings, by level, and `newest_s` those of the last time.
    """

    def __init__(
        self,
        references: Mapping[str, Reference],
        clock: Clock | None = None,
        clock_s: Callable[[], float] = perf_counter,
        cores: CoreSpeed | None = None,
    ) -> None:
        self._references, self._clock, self._clock_s = references, clock or HostClock(), clock_s
        self._cores = cores
        self._last_s = -math.inf
        self.readings_s: dict[str, list[float]] = {level: [] for level in references}
        self.newest_s: dict[str, float] = {}

    def maybe_time(self) -> bool:
        """Time all references, unless this was done a short time ago; tell whether they were timed."""
        if self._clock_s() - self._last_s < EVERY_S:
            return False
        self.time()
        return True

    def time(self) -> None:
        cores, self.newest_s = self._cores, {}
        for level, reference in self._references.items():
            if cores is None:
                reading_s, counts = reference.seconds(self._clock), True
            elif level == MEMORY:
                reading_s, counts = cores.watch(partial(reference.seconds, self._clock))
            else:
                is_full, _ = cores.wait(_MOST_S)
                reading_s = reference.seconds(self._clock)
                counts = is_full and cores.is_full()
            if counts:
                self.readings_s[level].append(reading_s)
                self.newest_s[level] = reading_s
        self._last_s = self._clock_s()

    def pooled(self) -> dict[str, Pooled]:
        """Return the summary of all readings, of levels that have one."""
        return {level: Pooled.of(readings_s) for level, readings_s in self.readings_s.items() if readings_s}


def scale_since(then: Mapping[str, Pooled], now: Mapping[str, Pooled]) -> dict[str, float | None]:
    """Return, for each level, the factor by which products take longer now; 1.0 where readings are near.

    A change of memory is followed in proportion to how certain it is: by the part of its square that the
    variance of single readings does not explain. In caches it counts where all readings,
    but the few outermost, are LEAST_DRIFT apart: each new array there takes another time, and a machine may
    have been at two speeds by turns while it was calibrated. Beyond MOST_DRIFT the result is None: threads
    waited for cores. Levels with fewer than two readings stay as they were.
    """
    changes: dict[str, float | None] = dict.fromkeys(now, 1.0)
    for level, new in now.items():
        old = then.get(level)
        if old is None or old.range_s is None or new.range_s is None:
            continue
        ratio = new.time_s / old.time_s
        if max(ratio, 1 / ratio) > MOST_DRIFT:
            changes[level] = None
        elif level == MEMORY:
            change = math.log(ratio)
            certain = 1 - (old.variance + new.variance) / change**2 if change else 0.0
            changes[level] = math.exp(max(certain, 0.0) * change)
        elif max(new.range_s[0] / old.range_s[1], old.range_s[0] / new.range_s[1]) >= LEAST_DRIFT:
            changes[level] = ratio
    return changes


def level_of(working_set_bytes: float, l2_bytes: int, l3_bytes: int) -> str:
    """Return the first cache that holds all that one product reads and writes, else MEMORY."""
    if working_set_bytes <= l2_bytes:
        return "L2"
    return LAST_CACHE if working_set_bytes <= l3_bytes else MEMORY


def _reader(words: NDArray[np.uint64], length: int, threads: int) -> Call:
    """Return a callable that reads the next `length` words, and restarts when fewer remain."""
    gathered, starts = np.ones(_GATHERED, dtype=np.uint64), equal_parts(length, threads).astype(np.uint64)
    gather = share(_gathers, (words, gathered), starts, scratch=np.empty(threads, dtype=np.uint64))
    first = 0

    def read() -> object:
        nonlocal first
        if first + length > len(words):
            first = 0
        begin, first = first, first + length
        return gather(np.uint64(begin))

    return read


@njit(nogil=True, cache=True)
def _gather(part, words, gathered, totals, begin, starts):
    # Whole numbers, whose sum may be taken in any order: the compiler adds many lanes at once.
    total = np.uint64(0)
    for i in range(begin + starts[part], begin + starts[part + 1]):
        total += gathered[words[i]]
    totals[part] = total


@njit(nogil=True, cache=True)
def _gathers(words, gathered, totals, begin, starts, pool):
    each_part(_gather, (words, gathered, totals, begin, starts), pool)
    return totals


def memory_read(size_bytes: int, threads: int) -> Callable[[], object]:
    """Return a callable that reads an array once, on `threads` threads; one thread starts no pool.

    The array has whole words and is written once here, so that its memory is allocated.
    """
    words = np.ones(max(1, -(-size_bytes // 8)), dtype=np.uint64)
    starts = equal_parts(len(words), threads).astype(np.uint64)
    return share(_sums, (words,), starts, scratch=np.empty(threads, dtype=np.uint64))


@njit(nogil=True, cache=True)
def _sum(part, words, totals, starts):
    # Whole numbers, whose sum may be taken in any order: the compiler adds many lanes at once.
    total = np.uint64(0)
    for i in range(starts[part], starts[part + 1]):
        total += words[i]
    totals[part] = total


@njit(nogil=True, cache=True)
def _sums(words, totals, starts, pool):
    each_part(_sum, (words, totals, starts), pool)
    return totals
