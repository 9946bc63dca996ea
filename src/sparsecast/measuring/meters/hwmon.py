"""Counters of energy below ``/sys/class/hwmon``, such as those of AMD's sockets."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from sparsecast.errors import MeterError
from sparsecast.measuring.energy import ProcessorMeter
from sparsecast.measuring.meters import METERS

#: Prefix of the label of a whole socket; others are single cores.
_SOCKET = "Esocket"


@METERS.register("hwmon")
class HwmonMeter(ProcessorMeter):
    """The energy of all sockets, in counters of 64 bits, which do not begin again."""

    order = 30
    source, run_s, step_s = "hwmon", 0.5, 0.01
    root: ClassVar[Path] = Path("/sys/class/hwmon")

    @classmethod
    def is_present(cls) -> bool:
        return bool(cls._counters())

    @classmethod
    def _counters(cls) -> list[Path]:
        labels = (path for path in cls.root.glob("*/energy*_label") if path.read_text().startswith(_SOCKET))
        return [path.with_name(path.name.replace("_label", "_input")) for path in labels]

    def __init__(self) -> None:
        self._paths = self._counters()
        try:
            self._read()
        except (OSError, ValueError) as error:
            raise MeterError(
                f"a counter of a socket cannot be read ({error}): expected a readable number; as root, chmod "
                f"a+r {self.root}/*/energy*_input, or measure time only"
            ) from error

    def joules(self) -> float | None:
        try:
            return self._read()
        except (OSError, ValueError):
            return None

    def _read(self) -> float:
        return sum(int(path.read_text()) for path in self._paths) / 1e6
