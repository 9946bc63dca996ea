"""RAPL counters of processors by Linux' performance events, which may be readable without powercap's files.

The kernel's unit ``power`` has an event for each domain (energy-pkg, energy-ram), the joules of one count,
and the processors to count on: one in each socket. Such an event counts the whole socket, not a process.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections import defaultdict
from pathlib import Path
from typing import ClassVar

from sparsecast.errors import MeterError
from sparsecast.machines.machine import listed_numbers
from sparsecast.measuring.energy import DRAM, PACKAGE, ProcessorMeter
from sparsecast.measuring.meters import METERS

#: Events whose joules are those of a product: the packages, and memory where it is counted.
_EVENTS = {"energy-pkg": PACKAGE, "energy-ram": DRAM}

#: Numbers of the system call perf_event_open.
SYSTEM_CALLS = {"x86_64": 298, "aarch64": 241}

#: Size of the first version of perf_event_attr.
_ATTRIBUTES = struct.Struct("=IIQ48x")

#: Flag: child programs do not inherit the file.
_CLOSE_ON_EXEC = 8


@METERS.register("perf")
class PerfMeter(ProcessorMeter):
    """The energy of all sockets: packages, and their memory where the processor counts it."""

    order = 20
    source, run_s, step_s = "rapl by perf", 0.1, 0.001
    root: ClassVar[Path] = Path("/sys/bus/event_source/devices/power")

    @classmethod
    def is_present(cls) -> bool:
        """Tell whether the kernel has events of packages: virtual machines may have the folder without."""
        return (cls.root / "events" / next(iter(_EVENTS))).exists()

    def __init__(self) -> None:
        self._counters: list[tuple[str, int, float]] = []
        try:
            kind = int((self.root / "type").read_text())
            sockets = listed_numbers((self.root / "cpumask").read_text())
            for event in _EVENTS:
                if (self.root / "events" / event).exists():
                    config = int((self.root / "events" / event).read_text().strip().removeprefix("event="), 0)
                    joules = float((self.root / "events" / f"{event}.scale").read_text())
                    self._counters += [
                        (_EVENTS[event], _open_event(kind, config, processor), joules)
                        for processor in sockets
                    ]
        except (OSError, ValueError) as error:
            self.close()
            raise MeterError(
                f"events of {self.root} cannot be counted ({error}): expected permission; as root, sysctl "
                f"kernel.perf_event_paranoid=0, or measure time only"
            ) from error

    def domains(self) -> dict[str, float]:
        joules: defaultdict[str, float] = defaultdict(float)
        try:
            for name, counter, scale in self._counters:
                joules[name] += scale * int.from_bytes(os.read(counter, 8), "little")
        except OSError:
            return {}
        return joules

    def close(self) -> None:
        while self._counters:
            os.close(self._counters.pop()[1])

    __del__ = close


def _open_event(kind: int, config: int, processor: int) -> int:
    """Return the file of an event that is counted on a processor, for all processes."""
    number = SYSTEM_CALLS.get(platform.machine())
    if number is None:
        raise OSError(f"perf_event_open has no known number on {platform.machine()}")
    attributes = ctypes.create_string_buffer(_ATTRIBUTES.pack(kind, _ATTRIBUTES.size, config))
    system = ctypes.CDLL(None, use_errno=True)
    arguments = map(ctypes.c_long, (-1, processor, -1, _CLOSE_ON_EXEC))
    file = int(system.syscall(ctypes.c_long(number), ctypes.byref(attributes), *arguments))
    if file < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return file
