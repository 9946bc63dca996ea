"""The surroundings of a run of measurements: other programs, and the speed of the machine."""

from __future__ import annotations

from time import perf_counter

from sparsecast.measuring.conditions import Watch
from sparsecast.measuring.references import ReferenceMonitor
from sparsecast.records import Conditions


class Surroundings:
    """Watches the machine during a run, and tells what it did in a stretch of it.

    Parameters
    ----------
    monitor : ReferenceMonitor, optional
        Times the reference products; without one, there are none.
    """

    def __init__(self, monitor: ReferenceMonitor | None = None) -> None:
        self._watch, self._monitor = Watch(), monitor
        self._start_s = perf_counter()

    def begin(self) -> None:
        """Begin a stretch; the references are timed first, unless that was a short time ago."""
        if self._monitor is not None:
            self._monitor.maybe_time()
        self._start_s = perf_counter()

    def look(self) -> None:
        """Look at the other programs, unless that was a moment ago: to be called often."""
        self._watch.look()

    def conditions(self) -> Conditions:
        """Return what the machine did since the stretch began."""
        pooled = self._monitor.pooled() if self._monitor else {}
        return self._watch.since(self._start_s, {level: each.time_s for level, each in pooled.items()})
