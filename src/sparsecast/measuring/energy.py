"""Joules of callables: a meter is read before and after a run that is long enough for it.

A meter that counts joules does not say when it looks: one of a processor about every millisecond, NVIDIA's
ten times a second, with a sensor that may see only part of that time. So a run is read that lasts many of
its steps, not a call of microseconds. What was not measured is None.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar, Protocol

from sparsecast.measuring.timing import Call, Clock

#: Domains of a processor that some meters count apart, and what a meter counts in all.
PACKAGE, DRAM, TOTAL = "package", "dram", "total"

#: The `source` of meters that compute joules instead of counting them.
MODELLED = "modelled"

#: Seconds of a pause in which idle power is read.
IDLE_S = 2.0


class Meter(Protocol):
    """Something that counts joules.

    Attributes
    ----------
    source : str
        What a Record says of where its energy comes from.
    run_s : float
        Seconds of a run that is read.
    step_s : float
        About the seconds after which the counter moves on: so much of a run may be missed.
    """

    source: str
    run_s: float
    step_s: float

    def joules(self) -> float | None:
        """Return the joules used since some moment in the past, None where the meter does not answer."""
        ...


class ProcessorMeter(ABC):
    """A Meter of the processors of this machine: a member of METERS.

    The class is registered. Its instances are made without arguments; that raises a MeterError, in one line
    with the remedy, if the counters are there and cannot be read.

    Attributes
    ----------
    order : int
        Meters are tried from the least order on, and the first that can be read is used. RAPL by its files
        has 10, by performance events 20, the counters of sockets below hwmon 30.
    source, run_s, step_s
        As of a Meter.
    is_modelled : bool
        It computes joules from a model of power and counts nothing: it is never tried, but chosen by its
        name, and its Records are not kept.
    """

    order: ClassVar[int]
    is_modelled: ClassVar[bool] = False
    source: str
    run_s: float
    step_s: float

    @classmethod
    @abstractmethod
    def is_present(cls) -> bool:
        """Tell whether this machine has such counters, which need not be readable."""

    @abstractmethod
    def joules(self) -> float | None:
        """Return the joules used since some moment in the past, None where the meter does not answer."""

    def domains(self) -> Mapping[str, float]:
        """Return the joules of PACKAGE and DRAM so far; empty where they are not counted apart."""
        return {}

    def work(self, entries: int) -> None:  # noqa: B027
        """Take note of products of so many entries; a counter needs no telling."""


def is_modelled(meter: Meter | None) -> bool:
    """Tell whether a meter computes joules from a model of power."""
    return isinstance(meter, ProcessorMeter) and meter.is_modelled


def spent_joules(meter: Meter, run: Callable[[], object], entries: int) -> dict[str, float]:
    """Return the joules of a run with products of so many entries: TOTAL, and of each domain that is counted.

    What the meter does not answer, or where it stands still, is left out.
    """
    before = _readings(meter)
    run()
    if isinstance(meter, ProcessorMeter):
        meter.work(entries)
    used = {name: used_joules(before.get(name), joules) for name, joules in _readings(meter).items()}
    return {name: joules for name, joules in used.items() if joules is not None}


def _readings(meter: Meter) -> dict[str, float]:
    domains = dict(meter.domains()) if isinstance(meter, ProcessorMeter) else {}
    total = sum(domains.values()) if domains else meter.joules()
    return domains if total is None else {**domains, TOTAL: total}


def idle_power_w(meter: Meter, pause: Callable[[float], object] = time.sleep) -> float | None:
    """Return the watts of a device that does nothing, over IDLE_S seconds; None where nothing was counted."""
    before, start = meter.joules(), time.perf_counter()
    pause(IDLE_S)
    used = used_joules(before, meter.joules())
    return None if used is None else used / (time.perf_counter() - start)


def energy_of(call: Call, meter: Meter, clock: Clock, entries: int = 0) -> float | None:
    """Return the joules of one call, idle power included; None where nothing was counted.

    A call is a product of so many `entries`. It is warmed up, and `clock` sees when calls are done. The run
    takes about `run_s` of the meter.
    """
    calls = max(1, round(meter.run_s / max(clock.seconds(call, 16) / 16, 1e-9)))
    used = spent_joules(meter, lambda: clock.seconds(call, calls), calls * entries).get(TOTAL)
    return None if used is None else used / calls


def used_joules(before: float | None, after: float | None) -> float | None:
    """Return the difference of two readings, None unless the meter moved on."""
    return None if before is None or after is None or after <= before else after - before
