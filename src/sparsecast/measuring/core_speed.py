"""Whether the cores run at full speed at present, and whether our threads have them.

A core of a virtual machine is often one of two threads of a core that another machine also uses. While that
one works, everything here takes up to 1.7 times as long, and the system does not report it. Such phases last
from milliseconds to seconds. A small task in the first cache shows them; arithmetic in registers alone does
not.

Other programs here take a core for milliseconds. Linux counts how long each thread has waited for one.

Frequencies are those of Linux' ``cpufreq``: read, and set where permitted. They are set by writing both ends
of the permitted range, which only root may do; virtual machines have no such files. (Linux kernel
documentation, "CPU Performance Scaling".)
"""

from __future__ import annotations

import functools
import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import sub
from pathlib import Path
from statistics import mean

import numpy as np

from sparsecast.errors import DeviceError
from sparsecast.system.jit import njit
from sparsecast.system.numba_pool import each_part, share
from sparsecast.system.thread_pool import thread_pool

#: Factor of the fastest reading up to which a reading is at full speed. Slow ones take 1.5 times as long; one
#: after milliseconds of waiting for memory takes up to 1.14 times as long, as its clock is lower.
_TOLERANCE = 1.25

#: Share of a run that each of its threads may wait for a core: what it takes to wake a thread is less.
_WAITED = 0.02

#: Over about so many waits the share of those that reach full speed is averaged; below the least one waiting
#: hardly pays, and a measurement waits at least this part of its time, to see whether it pays again.
_AVERAGED, _LEAST_REACHED, _LEAST_PATIENCE = 200, 1 / 8, 1 / 8

#: Readings, and the seconds between them, to find the full speed before a measurement.
_FIRST_READINGS, _PAUSE_S = 40, 0.001

#: Words read, places gathered from (12 KiB together), and repetitions of a reading with one core, and with
#: several: what their hand-off varies by, some microseconds, must be far below the tolerance.
_WORDS, _PLACES, _TIMES, _TIMES_OF_SEVERAL = 1024, 512, 24, 160


class CoreSpeed:
    """Compares readings of a small task with the fastest one so far.

    `read_s` does the task and returns its seconds; infinite if not all threads took part, which is no
    reading. `pause` waits for a number of seconds, `clock_s` returns the seconds since some moment, `waits_s`
    those that each thread has waited for a core so far; nothing if the system does not tell.
    """

    def __init__(
        self,
        read_s: Callable[[], float],
        pause: Callable[[float], None] = time.sleep,
        clock_s: Callable[[], float] = time.perf_counter,
        waits_s: Callable[[], Sequence[float]] = tuple,
    ) -> None:
        self._read_s, self._pause, self._clock_s, self._waits_s = read_s, pause, clock_s, waits_s
        self._fastest_s, self._reached = math.inf, 1.0
        for _ in range(_FIRST_READINGS):
            self.is_full()
            pause(_PAUSE_S)

    def is_full(self) -> bool:
        """Tell whether the cores run at full speed, in tens of microseconds."""
        return (seconds := self._reading_s()) < math.inf and seconds <= _TOLERANCE * self._fastest_s

    def is_slow(self) -> bool:
        """Tell whether the cores run at less than full speed; not where a thread has none at present."""
        return _TOLERANCE * self._fastest_s < self._reading_s() < math.inf

    def _reading_s(self) -> float:
        seconds = min(self._read_s(), self._read_s())  # the first may fetch the work into the cache
        self._fastest_s = min(self._fastest_s, seconds)
        return seconds

    def watch(self, run: Callable[[], float]) -> tuple[float, bool]:
        """Run what returns its seconds; return them, and whether each thread had a core all the time."""
        before = self._waits_s()
        seconds = run()
        waited_s = max(map(sub, self._waits_s(), before), default=0.0)
        return seconds, waited_s <= _WAITED * seconds

    def wait(self, most_s: float) -> tuple[bool, float]:
        """Wait for full speed, for at most `most_s`; return whether it was reached, and the seconds used."""
        start = self._clock_s()
        while not (is_full := self.is_full()) and self._clock_s() - start < most_s:
            self._pause(_PAUSE_S)
        self._reached += (is_full - self._reached) / _AVERAGED
        return is_full, self._clock_s() - start

    @property
    def patience(self) -> float:
        """The part of the time for waiting that a measurement should use: less where waits were in vain."""
        return min(1.0, max(self._reached / _LEAST_REACHED, _LEAST_PATIENCE))


@functools.cache
def core_speed(threads: int) -> CoreSpeed:
    """Return the CoreSpeed of this number of cores, one for the whole process."""
    return CoreSpeed(reading(threads), waits_s=waits(threads))


def waits(threads: int) -> Callable[[], Sequence[float]]:
    """Return what CoreSpeed takes as `waits_s`, for the caller and the threads of the pool."""
    files: dict[int, int] = {}  # opened once: each reading then takes a microsecond

    def waits_s() -> list[float]:
        pooled = thread_pool().ids(threads) if threads > 1 else ()
        try:
            return [waited_s(thread) for thread in (threading.get_native_id(), *pooled)]
        except (OSError, ValueError):
            return []  # another system, or a container that hides it

    def waited_s(thread: int) -> float:
        try:
            text = os.pread(files[thread], 80, 0)
        except (KeyError, OSError):  # a new thread, or one with the number of another that ended
            if thread in files:
                os.close(files.pop(thread))
            files[thread] = os.open(f"/proc/self/task/{thread}/schedstat", os.O_RDONLY)
            text = os.pread(files[thread], 80, 0)
        _, waited_ns, _ = text.split()
        return 1e-9 * int(waited_ns)

    return waits_s


def reading(threads: int) -> Callable[[], float]:
    """Return a compiled callable that does the task on all cores at once and returns its seconds."""
    generator = np.random.default_rng(0)
    words = generator.integers(0, _PLACES, _WORDS, dtype=np.uint64)
    places, totals = np.ones(_PLACES, dtype=np.uint64), np.empty(threads, dtype=np.uint64)
    starts = np.arange(threads + 1, dtype=np.uint64)
    times = _TIMES if threads == 1 else _TIMES_OF_SEVERAL
    work = share(_works, (words, places, times), starts, scratch=totals)

    def read_s() -> float:
        start = time.perf_counter()
        work()
        seconds = time.perf_counter() - start
        return math.inf if threads > 1 and thread_pool().is_crowded else seconds

    read_s()  # compiles
    return read_s


@njit(nogil=True, cache=True)
def _work(part, words, places, times, totals, starts):
    total = np.uint64(0)
    for _ in range(times):
        for i in range(words.size):
            total += places[words[i]]
    totals[part] = total


@njit(nogil=True, cache=True)
def _works(words, places, times, totals, starts, pool):
    each_part(_work, (words, places, times, totals, starts), pool)


ROOT = Path("/sys/devices/system/cpu")

_LOW, _HIGH = "scaling_min_freq", "scaling_max_freq"


@dataclass(frozen=True, slots=True)
class Frequencies:
    """The frequencies of all cores."""

    root: Path = ROOT

    def mean_hz(self) -> float | None:
        """Return the present mean over the cores, None if unknown."""
        try:
            readings = [int((path / "scaling_cur_freq").read_text()) for path in self._cores()]
        except (OSError, ValueError):
            return None
        return 1e3 * mean(readings) if readings else None

    @contextmanager
    def at(self, hz: float) -> Iterator[None]:
        """Hold all cores at a frequency during the context; then restore their ranges."""
        cores, frequency = self._cores(), f"frequency {hz / 1e9:g} GHz"
        if not cores:
            raise DeviceError(
                f"{frequency} cannot be set: expected cpufreq in {self.root}, which virtual machines lack; "
                f"leave out --frequencies"
            )
        try:
            least = max(int((core / "cpuinfo_min_freq").read_text()) for core in cores)
            most = min(int((core / "cpuinfo_max_freq").read_text()) for core in cores)
            before = {core: _range(core) for core in cores}
        except (OSError, ValueError) as error:
            raise DeviceError(
                f"{frequency} cannot be set ({error}): expected ranges of frequencies in {self.root}; leave "
                f"out --frequencies"
            ) from error
        if not least <= hz / 1e3 <= most:
            raise DeviceError(
                f"{frequency}: expected {least / 1e6:g} to {most / 1e6:g} GHz, which all cores have; name "
                f"another"
            )
        try:
            try:
                for core in cores:
                    _set(core, f"{hz / 1e3:.0f}", f"{hz / 1e3:.0f}")
            except OSError as error:
                raise DeviceError(
                    f"{frequency} cannot be set ({error}): expected files that may be written; run as root, "
                    f"or leave out --frequencies"
                ) from error
            yield
        finally:
            for core, (low, high) in before.items():
                if _range(core) != (low, high):
                    _set(core, low, high)

    def _cores(self) -> list[Path]:
        return sorted(self.root.glob("cpu[0-9]*/cpufreq"))


def _range(core: Path) -> tuple[str, str]:
    return (core / _LOW).read_text().strip(), (core / _HIGH).read_text().strip()


def _set(core: Path, low: str, high: str) -> None:
    rises = int(high) >= int(_range(core)[1])
    for name, value in ((_HIGH, high), (_LOW, low)) if rises else ((_LOW, low), (_HIGH, high)):
        (core / name).write_text(value)
