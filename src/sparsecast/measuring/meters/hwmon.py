"""Counters of energy below ``/sys/class/hwmon``, such as those of AMD's sockets."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from sparsecast.errors import MeterError

ROOT = Path("/sys/class/hwmon")

#: How the label of a counter of a whole socket begins; others are of single cores.
SOCKET = "Esocket"


@dataclass(slots=True)
class HwmonMeter:
    """The energy of all sockets, in counters of 64 bits, which do not begin again.

    Raises
    ------
    MeterError
        If there is no counter of a socket, or it cannot be read.
    """

    root: Path = ROOT
    source: str = field(default="hwmon", init=False)
    run_s: float = field(default=0.5, init=False)
    step_s: float = field(default=0.01, init=False)
    _paths: list[Path] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        for label in sorted(self.root.glob("*/energy*_label")):
            if label.read_text().startswith(SOCKET):
                self._paths.append(label.with_name(label.name.replace("_label", "_input")))
        if not self._paths:
            raise MeterError(
                f"{self.root} has no counter of a socket: expected one labelled {SOCKET}; load the module "
                f"amd_energy, or measure time only"
            )
        try:
            self._read()
        except (OSError, ValueError) as error:
            raise MeterError(
                f"a counter of a socket cannot be read ({error}): expected a readable number; as root, chmod "
                f"a+r {self.root}/*/energy*_input, or measure time only"
            ) from error

    def joules(self) -> float | None:
        """Return the joules of all sockets since the system began, None where one does not answer."""
        try:
            return self._read()
        except (OSError, ValueError):
            return None

    def _read(self) -> float:
        return sum(int(path.read_text()) for path in self._paths) / 1e6
