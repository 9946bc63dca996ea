"""Reference products: the same small work, repeated; its time tells how fast the machine is now.

The speed of a machine moves by a factor within minutes where others share its caches and its memory. One
reference has its data in a core's own cache, one in the last cache, one in memory; each reads words in order
and gathers from a small vector. A single reading is as noisy as what it is to correct, so readings are pooled
over minutes, and a change counts only beyond their own noise.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

import numba
import numpy as np
from numpy.typing import NDArray

from sparsecast.measuring.timing import Call, Clock, HostClock, low

#: Seconds between two readings of a monitor, and seconds over which readings are pooled.
EVERY_S, WINDOW_S = 3.0, 120.0

#: The levels of the memory, the fastest first.
LEVELS = ("L2", "L3", "memory")

#: Most bytes of a reference that is to lie in the last cache and of one that is to lie in memory. The latter
#: takes 0.1 s to fill; of larger caches a virtual machine has a part only.
_MOST_L3_BYTES, _MOST_MEMORY_BYTES = 32 << 20, 256 << 20

#: Where the system does not tell of caches: those of most processors.
_USUAL_L2_BYTES, _USUAL_L3_BYTES = 1 << 20, 32 << 20

#: Bytes that one call of the reference in memory reads, the next bytes every time.
_SLICE_BYTES = 16 << 20

#: Calls that one reading of a level times.
_CALLS = {"L2": 15, "L3": 3, "memory": 2}

#: Words of the vector that is gathered from, 64 KiB, and of the pattern of places in it.
_GATHERED, _PATTERN = 1 << 13, 1 << 15


@dataclass(frozen=True, slots=True)
class Reference:
    """A product that is timed again and again.

    Attributes
    ----------
    call : callable
        Does it once.
    calls : int
        How many of them one reading times.
    warm : bool
        Whether one more call, which is not timed, comes first and fetches its data into the cache.
    """

    call: Call
    calls: int
    warm: bool

    def seconds(self, clock: Clock) -> float:
        """Return the seconds of a call, the low quantile of one reading."""
        if self.warm:
            self.call()
        return low([clock.seconds(self.call, 1) for _ in range(self.calls)])


@dataclass(frozen=True, slots=True)
class Pooled:
    """Readings of one reference over some minutes.

    Attributes
    ----------
    time_s : float
        Their median.
    noise : float or None
        Relative error of that median, by how far the readings scatter; None of a single reading.
    readings : int
    """

    time_s: float
    noise: float | None
    readings: int

    @classmethod
    def of(cls, readings_s: Sequence[float]) -> Pooled:
        """Summarise readings.

        Raises
        ------
        ValueError
            If there are none.
        """
        if not readings_s:
            raise ValueError("expected at least one reading of a reference")
        lower, middle, upper = (float(each) for each in np.quantile(readings_s, (0.25, 0.5, 0.75)))
        count = len(readings_s)
        # Of a normal distribution: 1.25 standard deviations over sqrt(n), of which the quartiles hold 1.35.
        noise = 1.25 * (upper - lower) / 1.35 / math.sqrt(count) / middle if count > 1 else None
        return cls(middle, noise, count)


def reference_bytes(l2_bytes: int | None, l3_bytes: int | None) -> dict[str, int]:
    """Return the bytes of each reference: half of a cache, and once and a half the last one.

    Parameters
    ----------
    l2_bytes, l3_bytes : int or None
        Of the caches that the threads have together; None where the system does not tell. A processor
        without a third level has the second as its last: ``l3_bytes`` 0.
    """
    l2 = _USUAL_L2_BYTES if l2_bytes is None else l2_bytes
    l3 = _USUAL_L3_BYTES if l3_bytes is None else l3_bytes
    sizes = {"L2": l2 // 2}
    if l3 > 2 * l2:
        sizes["L3"] = max(2 * l2, min(l3 // 2, _MOST_L3_BYTES))
    return sizes | {"memory": min(3 * max(l2, l3) // 2, _MOST_MEMORY_BYTES)}


def references(sizes: Mapping[str, int], threads: int) -> dict[str, Reference]:
    """Return the references of so many bytes each, their data written.

    Parameters
    ----------
    sizes : mapping of str to int
        As from `reference_bytes`.
    threads : int
        Threads that share each call; one starts no pool.
    """
    return {level: _reference(level, size, threads) for level, size in sizes.items()}


class ReferenceMonitor:
    """Times references now and then, and pools the readings.

    Parameters
    ----------
    references : mapping of str to Reference
        By level.
    clock : Clock, optional
        That times the references; the host's by default.
    clock_s : callable
        Returns the seconds since some moment, for when a reading was.
    every_s, window_s : float
        Seconds between two readings, and seconds over which they are pooled.

    Attributes
    ----------
    readings : dict of str to deque of (float, float)
        For each level, when and how many seconds.
    """

    def __init__(
        self,
        references: Mapping[str, Reference],
        clock: Clock | None = None,
        clock_s: Callable[[], float] = perf_counter,
        every_s: float = EVERY_S,
        window_s: float = WINDOW_S,
    ) -> None:
        self._references, self._clock, self._clock_s = references, clock or HostClock(), clock_s
        self._every_s, self._window_s = every_s, window_s
        self._last_s = -math.inf
        self.readings: dict[str, deque[tuple[float, float]]] = {level: deque() for level in references}

    def maybe_time(self) -> bool:
        """Time all references, unless that was a short time ago; tell whether they were timed."""
        if self._clock_s() - self._last_s < self._every_s:
            return False
        self.time()
        return True

    def time(self) -> None:
        """Time all references now."""
        for level, reference in self._references.items():
            self.readings[level].append((self._clock_s(), reference.seconds(self._clock)))
        self._last_s = self._clock_s()

    def pooled(self, until_s: float | None = None) -> dict[str, Pooled]:
        """Return the readings of the last minutes, summarised; levels without a reading are left out.

        Parameters
        ----------
        until_s : float, optional
            End of these minutes; by default now.
        """
        end = self._clock_s() if until_s is None else until_s
        found = {}
        for level, readings in self.readings.items():
            pooled = [seconds for at_s, seconds in readings if end - self._window_s <= at_s <= end]
            if pooled:
                found[level] = Pooled.of(pooled)
        return found


def scale_since(
    then: Mapping[str, Pooled], now: Mapping[str, Pooled], sigmas: float = 2.0
) -> dict[str, float]:
    """Return, for each level, how many times longer products take now; 1.0 where noise could be the reason.

    Parameters
    ----------
    then, now : mapping of str to Pooled
        By level. A level that one of them lacks, or whose noise one of them cannot tell, is left as it was.
    sigmas : float
        A change counts beyond so many standard errors.
    """
    return {level: _change(then.get(level), pooled, sigmas) for level, pooled in now.items()}


def level_of(working_set_bytes: float, l2_bytes: int, l3_bytes: int) -> str:
    """Return where the data of a product lies when it is done again: the first cache that holds it.

    Parameters
    ----------
    working_set_bytes : float
        All that one product reads and writes.
    l2_bytes, l3_bytes : int
        As for `reference_bytes`.
    """
    if working_set_bytes <= l2_bytes:
        return "L2"
    return "L3" if working_set_bytes <= l3_bytes else "memory"


def _change(then: Pooled | None, now: Pooled, sigmas: float) -> float:
    if then is None or then.noise is None or now.noise is None:
        return 1.0
    ratio = now.time_s / then.time_s
    return ratio if abs(math.log(ratio)) > sigmas * math.hypot(then.noise, now.noise) else 1.0


def _reference(level: str, size: int, threads: int) -> Reference:
    words = _words(size)
    gathered = np.ones(_GATHERED, dtype=np.uint64)
    length = min(len(words), _SLICE_BYTES // 8) if level == "memory" else len(words)
    read = _reader(words, gathered, length, threads)
    return Reference(read, _CALLS[level], warm=level != "memory")


def _words(size: int) -> NDArray[np.uint64]:
    """Return places to gather from: copies of a pattern, because to draw all takes longer than a forecast."""
    pattern = np.random.default_rng(0).integers(0, _GATHERED, _PATTERN, dtype=np.uint64)
    words = np.empty((max(1, -(-size // pattern.nbytes)), _PATTERN), dtype=np.uint64)
    words[:] = pattern
    return words.ravel()[: max(1, size // 8)]


def _reader(words: NDArray[np.uint64], gathered: NDArray[np.uint64], length: int, threads: int) -> Call:
    """Return what reads the next `length` words, and starts again when fewer are left."""
    first = 0

    def read() -> object:
        nonlocal first
        if first + length > len(words):
            first = 0
        part = words[first : first + length]
        first += length
        return _gather_sum(part, gathered) if threads == 1 else _together(part, gathered, threads)

    return read


def _together(words: NDArray[np.uint64], gathered: NDArray[np.uint64], threads: int) -> object:
    before = numba.get_num_threads()
    numba.set_num_threads(threads)
    try:
        return _gather_sums(words, gathered, threads)
    finally:
        numba.set_num_threads(before)


@numba.njit(nogil=True, cache=True)
def _gather_sum(words: NDArray[np.uint64], gathered: NDArray[np.uint64]) -> np.uint64:
    # Whole numbers, whose sum may be taken in any order: the compiler adds many lanes at once.
    total = np.uint64(0)
    for i in range(len(words)):
        total += gathered[words[i]]
    return total


@numba.njit(nogil=True, cache=True, parallel=True)
def _gather_sums(words: NDArray[np.uint64], gathered: NDArray[np.uint64], threads: int) -> NDArray[np.uint64]:
    totals = np.empty(threads, dtype=np.uint64)
    for part in numba.prange(threads):
        first, last = part * len(words) // threads, (part + 1) * len(words) // threads
        totals[part] = _gather_sum(words[first:last], gathered)
    return totals
