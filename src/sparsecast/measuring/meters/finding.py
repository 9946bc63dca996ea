"""Finds the meter of this machine's processor."""

from __future__ import annotations

from sparsecast.errors import MeterError
from sparsecast.measuring.energy import Meter
from sparsecast.measuring.meters import hwmon, perf, powercap


def refusal() -> str:
    """Return why no meter can be read where RAPL is there; empty otherwise."""
    if not (_has_rapl() or perf.counts_packages(perf.ROOT)):
        return ""
    try:
        processor_meter()
    except MeterError as error:
        return str(error)
    return ""


def processor_meter() -> Meter:
    """Return a meter of the processor: RAPL by its files, else by performance events, else sockets' counters.

    Raises
    ------
    MeterError
        If there is none that can be read: why RAPL cannot where it is there, else what was looked for.
    """
    closed: MeterError | None = None
    if _has_rapl():
        try:
            return powercap.PowercapMeter(powercap.ROOT)
        except MeterError as error:
            closed = error
    if perf.counts_packages(perf.ROOT):
        try:
            return perf.PerfMeter(perf.ROOT)
        except MeterError as error:
            closed = closed or error
    try:
        return hwmon.HwmonMeter(hwmon.ROOT)
    except MeterError as error:
        if closed is not None:
            raise closed from error
        raise MeterError(
            f"energy of the processor: expected counters in {powercap.ROOT} or {hwmon.ROOT}, which virtual "
            f"machines lack; name a command by --meter-command, or measure time only"
        ) from error


def _has_rapl() -> bool:
    """Tell whether there are zones: virtual machines may have the folder, and nothing in it."""
    return any(powercap.ROOT.glob(powercap.ZONES))
