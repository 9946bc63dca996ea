"""Conditions of a measurement: other programs, as far as the system reports them, and the machine's speed.

Linux reports in /proc how many threads run or wait for a core, and the time that a hypervisor gave to others.
Values that a container or another system does not report are None. One reading takes tens of microseconds.

A Disturbance tells whether other work slowed a measurement, and by how much at most. The figures are from
`python benchmarks/run.py busy-calibrations` of commit 40d5b332.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from sparsecast.measuring.references import ReferenceMonitor
from sparsecast.measuring.timing import Timing
from sparsecast.records import Conditions

#: Seconds between two readings, which then take less than a five hundredth of the time.
EVERY_S = 0.05

#: Least seconds before the end of a measurement that count: stolen time is counted in steps of 10 ms.
LEAST_WINDOW_S = 1.0


@dataclass(frozen=True, slots=True)
class _Reading:
    at_s: float
    others: int | None  # running threads of other programs
    ticks: tuple[int, int] | None  # the stolen ones and all


class ConditionMonitor:
    """Monitors the machine during a run.

    `references` are timed, if given; `proc` is the folder of the system's files, and `clock_s` returns the
    seconds since some moment.
    """

    def __init__(
        self,
        references: ReferenceMonitor | None = None,
        proc: Path = Path("/proc"),
        clock_s: Callable[[], float] = perf_counter,
    ) -> None:
        self._references, self._proc, self._clock_s = references, proc, clock_s
        self._readings: list[_Reading] = []
        self.read()
        self._start_s = self._readings[0].at_s

    def begin(self) -> None:
        """Begin a period; the references are timed first, unless they were timed a short time ago."""
        if self._references is not None:
            self._references.maybe_time()
        self._start_s = self._clock_s()
        self._readings = self._since(self._start_s - LEAST_WINDOW_S)

    def look(self) -> None:
        """Read, unless the last reading is younger than EVERY_S."""
        if self._clock_s() - self._readings[-1].at_s >= EVERY_S:
            self.read()

    def read(self) -> None:
        """Read now."""
        stat = _counters(self._proc)
        now, running = self._clock_s(), stat.get("procs_running", [0])[0]
        others = 0 if running else None  # 0: the system shows the counter and does not count
        if running > 1:
            # The reading thread itself is ours. All that run are counted again afterwards: one of ours that
            # falls asleep in between is not another program's.
            tasks = self._proc.glob("self/task/*/stat")
            ours = sum(_text(task).rpartition(")")[2].split()[:1] == ["R"] for task in tasks)
            others = max(0, _counters(self._proc).get("procs_running", [0])[0] - max(1, ours))
        ticks = stat.get("cpu", [])[:8]  # those of guests are in the first two counters already
        stolen = (ticks[7], sum(ticks)) if len(ticks) == 8 else None
        self._readings.append(_Reading(now, others, stolen))

    def conditions(self) -> Conditions:
        """Return the conditions since the period began, or for LEAST_WINDOW_S if it is shorter."""
        self.read()
        readings = self._since(min(self._start_s, self._readings[-1].at_s - LEAST_WINDOW_S))
        others = [reading.others for reading in readings if reading.others is not None]
        stolen_share = None
        first, last = readings[0].ticks, readings[-1].ticks
        if first is not None and last is not None and last[1] > first[1]:
            stolen_share = (last[0] - first[0]) / (last[1] - first[1])
        return Conditions(
            other_processes=sum(others) / len(others) if others else None,
            stolen_share=stolen_share,
            references_s=dict(self._references.newest_s) if self._references else {},
        )

    def _since(self, start_s: float) -> list[_Reading]:
        """Return the readings since then, and the one before them."""
        later = sum(reading.at_s > start_s for reading in self._readings)
        return self._readings[-later - 1 :]


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""  # what the system does not tell becomes None


def _counters(proc: Path) -> dict[str, list[int]]:
    """Return the counters of /proc/stat, without the long line of interrupts."""
    lines = (
        line.split() for line in _text(proc / "stat").splitlines() if line.startswith(("cpu ", "procs_"))
    )
    return {name: [int(word) for word in words] for name, *words in lines}


#: Limits of a quiet machine: mean number of other processes, share of stolen time, and share of products
#: that were never measured with a core for each thread.
QUIET_OTHERS, QUIET_STOLEN, QUIET_WAITED = 0.25, 0.02, 0.1

#: Error of nine tenths of the times, at most, beside other processes: samples that these disturbed do not
#: count.
_BESIDE = 0.25

#: Least error that makes times useless for a forecast, and share of products that were never measured with a
#: core for each thread: models cannot do without the most.
UNUSABLE, MOST_WAITED = 1.0, 0.5

CALIBRATE_AGAIN = "calibrate again while the machine is idle, or for fewer threads"


@dataclass(frozen=True, slots=True)
class Disturbance:
    """Disturbance of a measurement."""

    #: other_processes, stolen_share: as in Conditions; 0.0 if the system does not report them.
    other_processes: float
    stolen_share: float
    too_long: float  # greatest relative error of times due to other work
    waited_share: float = 0.0  # share of the products that were never measured with a core for each thread

    @property
    def is_unusable(self) -> bool:
        return self.too_long >= UNUSABLE or self.waited_share > MOST_WAITED

    def sentence(self) -> str:
        """Return a sentence on the disturbance, with the remedy if the measurement is useless."""
        if not self.is_unusable:
            return f"{self}."
        return f"{self}. {CALIBRATE_AGAIN.capitalize()}: these times are no basis for a forecast."

    def __str__(self) -> str:
        causes = []
        if self.other_processes > QUIET_OTHERS:
            causes.append(f"{self.other_processes:.1f} other processes ran")
        if self.stolen_share > QUIET_STOLEN:
            causes.append(f"{self.stolen_share:.0%} of the processors' time went to other machines")
        if self.waited_share > QUIET_WAITED:
            causes.append(f"threads of {self.waited_share:.0%} of the products always waited for cores")
        most = f"up to {self.too_long:.0%} " if self.too_long > 0.0 else ""
        return f"measured while {' and '.join(causes)}; times may be {most}too long"


def disturbance(conditions: Iterable[Conditions | None], threads: int) -> Disturbance | None:
    """Return the disturbance of products with `threads` threads, None if there is none.

    The conditions of the Records (None for a Record without them) are averaged.
    """
    reported = [condition for condition in conditions if condition is not None]
    others = _mean(condition.other_processes for condition in reported)
    stolen = _mean(condition.stolen_share for condition in reported)
    waited = _mean(condition.waited_for_cores for condition in reported)
    if others <= QUIET_OTHERS and stolen <= QUIET_STOLEN and waited <= QUIET_WAITED:
        return None
    return Disturbance(others, stolen, _BESIDE * min(1.0, others) + stolen * threads, waited)


def waited_for_cores(timing: Timing, conditions: Conditions) -> bool | None:
    """Tell whether a product was never measured with a core for each thread, as other programs had them.

    None if that is not known. On a quiet machine, the cores themselves were slow.
    """
    if timing.slow_share is None or conditions.other_processes is None:
        return None
    is_quiet = conditions.other_processes <= QUIET_OTHERS and (conditions.stolen_share or 0.0) <= QUIET_STOLEN
    return timing.slow_share == 1.0 and not is_quiet


def _mean(values: Iterable[float | None]) -> float:
    reported = [value for value in values if value is not None]
    return sum(reported) / len(reported) if reported else 0.0
