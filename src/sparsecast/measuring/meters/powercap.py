"""RAPL counters of processors in Linux' ``/sys/class/powercap``.

A zone has a name (package-0, core, uncore, dram, psys), a counter of microjoules, and the range after which
the counter restarts at 0. Zones are nested: core and dram are within the package of a socket, whose counter
leaves `dram` out. psys covers the whole platform, with the others.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from sparsecast.errors import MeterError
from sparsecast.measuring.energy import DRAM, PACKAGE, ProcessorMeter
from sparsecast.measuring.meters import METERS

#: Names of the folders of a processor's zones, of Intel and of AMD.
_ZONES = "intel-rapl:*"

#: Zones that count for a product, summed over the sockets.
_COUNTED = (PACKAGE, DRAM)


@METERS.register("powercap")
class PowercapMeter(ProcessorMeter):
    """The energy of all sockets: packages, and their memory where the processor counts it."""

    order = 10
    source, run_s, step_s = "rapl", 0.1, 0.001
    root: ClassVar[Path] = Path("/sys/class/powercap")

    @classmethod
    def is_present(cls) -> bool:
        """Tell whether a zone is a package: virtual machines may have an empty folder."""
        return any(_domain(zone) == "package" for zone in cls.root.glob(_ZONES))

    def __init__(self) -> None:
        zones = {zone: _domain(zone) for zone in self.root.glob(_ZONES)}
        self._zones = {zone: name for zone, name in zones.items() if name in _COUNTED}
        self._ranges_uj = {zone: _number(zone / "max_energy_range_uj") for zone in self._zones}
        self._last_uj = {zone: _number(zone / "energy_uj") for zone in self._zones}
        self._used_uj = dict.fromkeys(self._zones.values(), 0)

    def domains(self) -> dict[str, float]:
        try:
            for zone, name in self._zones.items():
                now_uj, last_uj = _number(zone / "energy_uj"), self._last_uj[zone]
                # At most one restart: a range lasts a minute, a run much less.
                restart_uj = self._ranges_uj[zone] if now_uj < last_uj else 0
                self._used_uj[name] += now_uj - last_uj + restart_uj
                self._last_uj[zone] = now_uj
        except MeterError:
            return {}
        return {name: used_uj / 1e6 for name, used_uj in self._used_uj.items()}


def _domain(zone: Path) -> str:
    try:
        return (zone / "name").read_text().strip().partition("-")[0]
    except OSError:
        return ""  # a zone that is not there any more


def _number(path: Path) -> int:
    try:
        return int(path.read_text())
    except (OSError, ValueError) as error:
        raise MeterError(
            f"{path} cannot be read ({error}): expected a readable counter of energy; as root, chmod a+r "
            f"{path.parent.parent}/*/energy_uj, or sysctl kernel.perf_event_paranoid=0, or measure time only"
        ) from error
