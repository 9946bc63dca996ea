"""RAPL counters of processors, as Linux shows them below ``/sys/class/powercap``.

A zone has a name (package-0, core, uncore, dram, psys), a counter of microjoules, and the range after which
the counter begins at 0 again. Zones lie within each other: core and dram within the package of a socket,
where `package` does not count `dram`. psys is of the whole platform and counts the others again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from sparsecast.errors import MeterError

ROOT = Path("/sys/class/powercap")

#: Names of the folders of a processor's zones; AMD's are called so as well.
ZONES = "intel-rapl:*"

#: Zones of a processor; each is summed over the sockets. What a product costs is that of TOTAL.
DOMAINS = ("package", "core", "uncore", "dram", "psys")
TOTAL = ("package", "dram")


@dataclass(slots=True)
class _Counter:
    """A counter that begins at 0 again after `range_uj`: how far it went since the first reading."""

    path: Path
    range_uj: int
    last_uj: int
    gone_uj: int = 0

    @classmethod
    def of(cls, zone: Path) -> _Counter:
        return cls(zone / "energy_uj", _number(zone / "max_energy_range_uj"), _number(zone / "energy_uj"))

    def joules(self) -> float:
        now_uj = _number(self.path)
        # Once around at most: a range lasts a minute, a run much less.
        self.gone_uj += now_uj - self.last_uj + (self.range_uj if now_uj < self.last_uj else 0)
        self.last_uj = now_uj
        return self.gone_uj / 1e6


@dataclass(slots=True)
class PowercapMeter:
    """The energy of all sockets: packages, and their memory where the processor counts it.

    Parameters
    ----------
    root : Path
        Folder of the zones.

    Raises
    ------
    MeterError
        If there is no package, or its counter cannot be read.
    """

    root: Path = ROOT
    source: str = field(default="rapl", init=False)
    run_s: float = field(default=0.1, init=False)
    step_s: float = field(default=0.001, init=False)
    _counters: dict[str, list[_Counter]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        for zone in sorted(self.root.glob(ZONES)):
            name = _domain(zone)
            if name in DOMAINS:
                self._counters.setdefault(name, []).append(_Counter.of(zone))
        if "package" not in self._counters:
            raise MeterError(
                f"{self.root} has no counter of a processor: expected intel-rapl zones; load the module "
                f"intel_rapl_msr, or measure time only"
            )

    def joules(self) -> float | None:
        """Return the joules of packages and memory since the meter was made; None if one cannot be read."""
        found = self.domains()
        return None if found is None else sum(found.get(name, 0.0) for name in TOTAL)

    def domains(self) -> dict[str, float] | None:
        """Return the joules of each domain since the meter was made; None if one cannot be read any more."""
        try:
            return {name: sum(each.joules() for each in own) for name, own in self._counters.items()}
        except MeterError:
            return None


def _domain(zone: Path) -> str:
    try:
        return (zone / "name").read_text().strip().partition("-")[0]
    except OSError:
        return ""  # a zone that is not there any more


def _number(path: Path) -> int:
    try:
        return int(path.read_text())
    except PermissionError as error:
        raise MeterError(
            f"{path} cannot be read (permission denied): expected a readable counter of energy; as root, "
            f"chmod a+r {path.parent.parent}/*/energy_uj, or sysctl kernel.perf_event_paranoid=0, or measure "
            f"time only"
        ) from error
    except (OSError, ValueError) as error:
        raise MeterError(f"{path} cannot be read ({error}): expected a number; measure time only") from error
