"""RAPL counters of processors by Linux' performance events, which may be open where powercap's files are not.

The kernel's unit ``power`` has an event for each domain (energy-pkg, energy-ram), the joules of one count,
and the processors to count on: one in each socket. Such an event counts the whole socket, not a process.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from dataclasses import dataclass, field
from pathlib import Path

from sparsecast.errors import MeterError

ROOT = Path("/sys/bus/event_source/devices/power")

#: Events whose joules are those of a product: the packages, and memory where it is counted.
EVENTS = ("energy-pkg", "energy-ram")

#: Numbers of perf_event_open.
_CALLS = {"x86_64": 298, "aarch64": 241}

#: The first version of perf_event_attr has so many bytes.
_ATTRIBUTES = struct.Struct("=IIQ48x")

#: Flag: the file is closed in programs that are started.
_CLOSE_ON_EXEC = 8


def counts_packages(root: Path) -> bool:
    """Tell whether the kernel has events of packages: virtual machines may have the folder without them."""
    return (root / "events" / EVENTS[0]).exists()


@dataclass(slots=True)
class PerfMeter:
    """The energy of all sockets: packages, and their memory where the processor counts it.

    Raises
    ------
    MeterError
        If the kernel has no such events, or opens none.
    """

    root: Path = ROOT
    source: str = field(default="rapl by perf", init=False)
    run_s: float = field(default=0.1, init=False)
    step_s: float = field(default=0.001, init=False)
    _counters: list[tuple[int, float]] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        if not counts_packages(self.root):
            raise MeterError(f"{self.root} has no event {EVENTS[0]}: expected one; measure time only")
        try:
            kind = int((self.root / "type").read_text())
            sockets = _processors((self.root / "cpumask").read_text())
            for event in EVENTS:
                if (self.root / "events" / event).exists():
                    self._open(event, kind, sockets)
        except (OSError, ValueError) as error:
            self.close()
            raise MeterError(
                f"events of {self.root} cannot be counted ({error}): expected permission; as root, sysctl "
                f"kernel.perf_event_paranoid=0, or measure time only"
            ) from error

    def _open(self, event: str, kind: int, sockets: list[int]) -> None:
        config = int((self.root / "events" / event).read_text().strip().removeprefix("event="), 0)
        joules = float((self.root / "events" / f"{event}.scale").read_text())
        self._counters += [(_opened(kind, config, processor), joules) for processor in sockets]

    def joules(self) -> float | None:
        """Return the joules since the meter was made; None if an event cannot be read any more."""
        if not self._counters:
            return None
        try:
            return sum(scale * _count(counter) for counter, scale in self._counters)
        except (OSError, struct.error):
            return None

    def close(self) -> None:
        """Close the events."""
        while self._counters:
            os.close(self._counters.pop()[0])

    def __del__(self) -> None:
        self.close()


def _processors(text: str) -> list[int]:
    """Return the numbers of a list such as ``0-1,36``."""
    ends = [each.split("-") for each in text.strip().split(",")]
    return [number for each in ends for number in range(int(each[0]), int(each[-1]) + 1)]


def _opened(kind: int, config: int, processor: int) -> int:
    """Return the file of an event that is counted on a processor, whatever runs there."""
    call = _CALLS.get(platform.machine())
    if call is None:
        raise OSError(f"perf_event_open has no known number on {platform.machine()}")
    attributes = ctypes.create_string_buffer(_ATTRIBUTES.pack(kind, _ATTRIBUTES.size, config))
    system = ctypes.CDLL(None, use_errno=True)
    arguments = [ctypes.c_long(each) for each in (-1, processor, -1, _CLOSE_ON_EXEC)]
    found = int(system.syscall(ctypes.c_long(call), ctypes.byref(attributes), *arguments))
    if found < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return found


def _count(counter: int) -> int:
    return int(struct.unpack("=Q", os.read(counter, 8))[0])
