"""Joules of callables: a meter is read before and after a run that is long enough for it.

A meter that counts joules does not say when it looks. NVIDIA's counter is refreshed about ten times a second,
and its sensor may see only part of that time. So a run of seconds is read, not a call of microseconds. The
run includes the power of the idle device, so that power is measured and reported, too.

What was not measured is None: a meter that no longer answers, or that did not move.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from sparsecast.measuring.timing import Call, Clock

#: Seconds of a run whose energy is read, and of the pause in which idle power is.
RUN_S, IDLE_S = 2.0, 2.0


class Meter(Protocol):
    """Something that counts joules.

    Attributes
    ----------
    source : str
        What a Record says of where its energy comes from.
    """

    source: str

    def joules(self) -> float | None:
        """Return the joules used since some moment in the past, None where the meter does not answer."""
        ...


@dataclass(frozen=True, slots=True)
class Energy:
    """The energy of one call, everything that the device used while it ran.

    Attributes
    ----------
    energy_j : float
        Joules a call, idle power included.
    power_w : float
        Watts during the run.
    run_s : float
        Seconds of the run.
    source : str
        Of the meter.
    """

    energy_j: float
    power_w: float
    run_s: float
    source: str


def idle_power_w(meter: Meter, pause: Callable[[float], object] = time.sleep) -> float | None:
    """Return the watts of a device that does nothing, over IDLE_S seconds; None where nothing was counted.

    Parameters
    ----------
    meter : Meter
    pause : callable
        Waits so many seconds.
    """
    before, start = meter.joules(), time.perf_counter()
    pause(IDLE_S)
    used = _used(before, meter.joules())
    return None if used is None else used / (time.perf_counter() - start)


def energy_of(call: Call, meter: Meter, clock: Clock) -> Energy | None:
    """Return the joules of one call, from a run of about RUN_S seconds; None where nothing was counted.

    Parameters
    ----------
    call : callable
        Warmed up.
    meter : Meter
    clock : Clock
        Sees when the calls are done.
    """
    calls = max(1, round(RUN_S / max(clock.seconds(call, 16) / 16, 1e-9)))
    before = meter.joules()
    run_s = clock.seconds(call, calls)
    used = _used(before, meter.joules())
    return None if used is None else Energy(used / calls, used / run_s, run_s, meter.source)


def _used(before: float | None, after: float | None) -> float | None:
    """Return the difference of two readings, None unless the meter moved on."""
    return None if before is None or after is None or after <= before else after - before
