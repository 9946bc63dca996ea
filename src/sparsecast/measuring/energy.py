"""Joules of callables: a meter is read before and after a run that is long enough for it.

The counter of a meter moves in steps: about every millisecond for a processor, ten times a second for NVIDIA,
with a sensor that may see only part of that time. So a run lasts many steps instead of the microseconds of a
call. Unmeasured values are None.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Protocol

from sparsecast.measuring.timing import Call, Clock

#: Seconds of a pause in which idle power is read.
IDLE_S = 2.0


class Meter(Protocol):
    """A counter of joules.

    Attributes
    ----------
    source : str
        Name of the source in Records.
    run_s : float
        Seconds of a run.
    step_s : float
        Approximate seconds of a step of the counter: the most of a run that may be missed.
    """

    source: str
    run_s: float
    step_s: float

    def joules(self) -> float | None:
        """Return the joules since some moment in the past, None if the meter does not answer."""
        ...


class ProcessorMeter(ABC):
    """A Meter of the processors of this machine: a member of METERS.

    The class is registered. Instances are made without arguments; a MeterError, in one line with the remedy,
    says that the counters are there and cannot be read.

    Attributes
    ----------
    order : int
        Meters are tried in ascending order, and the first readable one is used. RAPL by its files has 10, by
        performance events 20, the counters of sockets below hwmon 30.
    source, run_s, step_s
        As in a Meter.
    """

    order: ClassVar[int]
    source: str
    run_s: float
    step_s: float

    @classmethod
    @abstractmethod
    def is_present(cls) -> bool:
        """Tell whether this machine has such counters, readable or not."""

    @abstractmethod
    def joules(self) -> float | None: ...


def idle_power_w(meter: Meter, pause: Callable[[float], object] = time.sleep) -> float | None:
    """Return the watts of an idle device, over IDLE_S seconds; None if nothing was counted."""
    before, start = meter.joules(), time.perf_counter()
    pause(IDLE_S)
    used = used_joules(before, meter.joules())
    return None if used is None else used / (time.perf_counter() - start)


def energy_of(call: Call, meter: Meter, clock: Clock) -> float | None:
    """Return the joules of one call, with idle power; None if nothing was counted.

    `call` is warmed up, and `clock` times calls to their end. The run takes about `run_s` of the meter.
    """
    calls = max(1, round(meter.run_s / max(clock.seconds(call, 16) / 16, 1e-9)))
    before = meter.joules()
    clock.seconds(call, calls)
    used = used_joules(before, meter.joules())
    return None if used is None else used / calls


def used_joules(before: float | None, after: float | None) -> float | None:
    """Return the difference of two readings, None unless the meter moved on."""
    return None if before is None or after is None or after <= before else after - before
