"""Finds the meter of this machine's processor."""

from __future__ import annotations

from sparsecast.errors import MeterError
from sparsecast.measuring.energy import Meter
from sparsecast.measuring.meters import hwmon, powercap


def refusal() -> str:
    """Return why RAPL cannot be read where it is there; empty otherwise."""
    if not powercap.ROOT.exists():
        return ""
    try:
        powercap.PowercapMeter(powercap.ROOT)
    except MeterError as error:
        return str(error)
    return ""


def processor_meter() -> Meter:
    """Return a meter of the processor: RAPL, else the counters of sockets.

    Raises
    ------
    MeterError
        If there is none that can be read: why RAPL cannot where it is there, else what was looked for.
    """
    if powercap.ROOT.exists():
        return powercap.PowercapMeter(powercap.ROOT)
    try:
        return hwmon.HwmonMeter(hwmon.ROOT)
    except MeterError as error:
        raise MeterError(
            f"energy of the processor: expected counters in {powercap.ROOT} or {hwmon.ROOT}, which virtual "
            f"machines lack; name a command by --meter-command, or measure time only"
        ) from error
