"""Frequencies of a processor's cores, from Linux' ``cpufreq``: read, and set where permitted.

Frequencies are set by writing both ends of the permitted range, which only root may do; virtual machines have
no such files. (Linux kernel documentation, "CPU Performance Scaling".)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from sparsecast.errors import DeviceError

ROOT = Path("/sys/devices/system/cpu")

_LOW, _HIGH = "scaling_min_freq", "scaling_max_freq"


@dataclass(frozen=True, slots=True)
class Frequencies:
    """The frequencies of all cores."""

    root: Path = ROOT

    def mean_hz(self) -> float | None:
        """Return the present mean over the cores, None if unknown."""
        try:
            readings = [int((path / "scaling_cur_freq").read_text()) for path in self._cores()]
        except (OSError, ValueError):
            return None
        return 1e3 * mean(readings) if readings else None

    @contextmanager
    def at(self, hz: float) -> Iterator[None]:
        """Hold all cores at a frequency during the context; then restore their ranges."""
        before = self._ranges(hz)
        try:
            try:
                for core in before:
                    _set(core, f"{hz / 1e3:.0f}", f"{hz / 1e3:.0f}")
            except OSError as error:
                raise DeviceError(
                    f"frequency {hz / 1e9:g} GHz cannot be set ({error}): expected files that may be "
                    f"written; run as root, or leave out --frequencies"
                ) from error
            yield
        finally:
            for core, (low, high) in before.items():
                if _range(core) != (low, high):
                    _set(core, low, high)

    def _ranges(self, hz: float) -> dict[Path, tuple[str, str]]:
        """Return the range of each core; raise a DeviceError unless all can have the frequency."""
        cores = self._cores()
        if not cores:
            raise DeviceError(
                f"frequency {hz / 1e9:g} GHz cannot be set: expected cpufreq in {self.root}, which virtual "
                f"machines lack; leave out --frequencies"
            )
        try:
            for core in cores:
                least, most = (int((core / f"cpuinfo_{end}_freq").read_text()) for end in ("min", "max"))
                if not least <= hz / 1e3 <= most:
                    raise DeviceError(
                        f"frequency {hz / 1e9:g} GHz: expected {least / 1e6:g} to {most / 1e6:g} GHz, which "
                        f"these cores have; name another"
                    )
            return {core: _range(core) for core in cores}
        except (OSError, ValueError) as error:
            raise DeviceError(
                f"frequency {hz / 1e9:g} GHz cannot be set ({error}): expected ranges of frequencies in "
                f"{self.root}; leave out --frequencies"
            ) from error

    def _cores(self) -> list[Path]:
        return sorted(self.root.glob("cpu[0-9]*/cpufreq"))


def _range(core: Path) -> tuple[str, str]:
    return (core / _LOW).read_text().strip(), (core / _HIGH).read_text().strip()


def _set(core: Path, low: str, high: str) -> None:
    rises = int(high) >= int(_range(core)[1])
    for name, value in ((_HIGH, high), (_LOW, low)) if rises else ((_LOW, low), (_HIGH, high)):
        (core / name).write_text(value)
