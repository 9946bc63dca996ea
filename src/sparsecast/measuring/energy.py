"""Joules of callables: a meter is read before and after a run that is long enough for it.

The counter of a meter moves in steps: about every millisecond for a processor, ten times a second for NVIDIA,
with a sensor that may see only part of that time. So a run lasts many steps instead of the microseconds of a
call. Unmeasured values are None.

A user's own meter is a command that prints the joules so far, for example of a wall meter.
"""

from __future__ import annotations

import math
import shlex
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar, Protocol

from sparsecast.errors import MeterError
from sparsecast.measuring.timing import Call, Clock

#: Domains of a processor that some meters count apart, and what a meter counts in all.
PACKAGE, DRAM, TOTAL = "package", "dram", "total"

#: The `source` of meters that compute joules instead of counting them.
MODELLED = "modelled"

#: Seconds of a pause in which idle power is read.
IDLE_S = 2.0


class Meter(Protocol):
    """A counter of joules."""

    source: str  # name of the source in Records
    run_s: float  # seconds of a run
    step_s: float  # approximate seconds of a step of the counter: the most of a run that may be missed

    def joules(self) -> float | None:
        """Return the joules since some moment in the past, None if the meter does not answer."""
        ...


class ProcessorMeter(ABC):
    """A Meter of the processors of this machine: a member of METERS.

    The class is registered. Instances are made without arguments; a MeterError, in one line with the remedy,
    says that the counters are there and cannot be read.
    """

    #: Meters are tried in ascending order, and the first readable one is used. RAPL by its files has 10, by
    #: performance events 20, the counters of sockets below hwmon 30.
    order: ClassVar[int]
    #: It computes joules from a model of power and counts nothing: it is never tried, but chosen by its name,
    #: and its Records are not kept.
    is_modelled: ClassVar[bool] = False
    #: source, run_s, step_s: as of a Meter.
    source: str
    run_s: float
    step_s: float

    @classmethod
    @abstractmethod
    def is_present(cls) -> bool:
        """Tell whether this machine has such counters, readable or not."""

    def joules(self) -> float | None:
        """Return the joules of all domains so far, None if the meter does not answer."""
        domains = self.domains()
        return sum(domains.values()) if domains else None

    def domains(self) -> Mapping[str, float]:
        """Return the joules of PACKAGE and DRAM so far; empty where they are not counted apart."""
        return {}

    def work(self, entries: int) -> None:  # noqa: B027
        """Take the entries of the products that follow; a counter does not need them."""


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
    """Return the watts of an idle device, over IDLE_S seconds; None if nothing was counted."""
    before, start = meter.joules(), time.perf_counter()
    pause(IDLE_S)
    used = used_joules(before, meter.joules())
    return None if used is None else used / (time.perf_counter() - start)


def energy_of(call: Call, meter: Meter, clock: Clock, entries: int = 0) -> float | None:
    """Return the joules of one call, with idle power; None if nothing was counted.

    `call` is a product of `entries` entries, warmed up, and `clock` times calls to their end. The run takes
    about `run_s` of the meter.
    """
    calls = max(1, round(meter.run_s / max(clock.seconds(call, 16) / 16, 1e-9)))
    used = spent_joules(meter, lambda: clock.seconds(call, calls), calls * entries).get(TOTAL)
    return None if used is None else used / calls


def used_joules(before: float | None, after: float | None) -> float | None:
    """Return the difference of two readings, None unless the meter moved on."""
    return None if before is None or after is None or after <= before else after - before


#: Timeout of a command.
_TIMEOUT_S = 10.0


class CommandMeter:
    """A Meter whose command prints one number, the joules since any moment.

    `command` is as in a shell, without substitutions. A MeterError says that it cannot be run now, or prints
    no number.
    """

    source, run_s, step_s = "command", 2.0, 0.1

    def __init__(self, command: str) -> None:
        self.command = command
        self._read()

    def joules(self) -> float | None:
        try:
            return self._read()
        except MeterError:
            return None

    def _read(self) -> float:
        try:
            process = subprocess.run(
                shlex.split(self.command), capture_output=True, text=True, timeout=_TIMEOUT_S, check=True
            )
            joules = float(process.stdout)
            if not math.isfinite(joules):
                raise ValueError(f"it prints {joules}")
        except (OSError, ValueError, IndexError, subprocess.SubprocessError) as error:
            why = " ".join(str(error).split())
            raise MeterError(
                f"meter command '{self.command}' ({why}): expected a number of joules so far; correct it"
            ) from error
        return joules
