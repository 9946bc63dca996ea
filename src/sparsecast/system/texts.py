"""Numbers and counts as text: three digits, a suitable unit, singular and plural."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: From here on three digits show 1 of a unit, and below it at most 999 of the next smaller one.
_ROUNDS_TO_ONE = 0.9995

_TIMES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_ENERGIES = {"J": 1.0, "mJ": 1e-3, "uJ": 1e-6}
_SIZES = {"GB": 1e9, "MB": 1e6, "kB": 1e3, "B": 1.0}
_PLURALS = {"matrix": "matrices"}


def time(seconds: float | None) -> str:
    """Return a time with three digits in a suitable unit."""
    return "-" if seconds is None else _in_units(seconds, _TIMES)


def conversion(seconds: float | None) -> str:
    """Return the time of a conversion; "none" without a conversion."""
    return "none" if seconds == 0 else time(seconds)


def energy(joules: float | None, source: str | None = None) -> str:
    """Return an energy with three digits in the unit that suits it, and its source where that is named."""
    if joules is None:
        return "not measured"
    return _in_units(joules, _ENERGIES) + (f", {source}" if source else "")


def size(count: float) -> str:
    """Return a number of bytes with three digits in a suitable unit."""
    return _in_units(count, _SIZES)


def interval(low_s: float | None, high_s: float | None) -> str:
    """Return an interval of times; an open one is unknown."""
    return "unknown" if low_s is None or high_s is None else f"{time(low_s)} - {time(high_s)}"


def energy_interval(joules: float | None, low_j: float | None, high_j: float | None) -> str:
    """Return an energy with its interval, if known."""
    if low_j is None or high_j is None:
        return energy(joules)
    return f"{energy(joules)} ({energy(low_j)} - {energy(high_j)})"


def percent(share: float | None) -> str:
    """Return a share in percent, or a dash."""
    return "-" if share is None else f"{100 * share:.1f} %"


def percent_number(share: float | None) -> str:
    """Return the percent of a share in at most five characters, so that eight fit in a line."""
    if share is None or share >= 9.995:
        return "-" if share is None else "> 999"
    return f"{100 * share:.0f}" if share >= 0.9995 else f"{100 * share:.1f}"


def signed_percent(error: float | None) -> str:
    """Return a signed relative error in whole percent."""
    return "-" if error is None else f"{100 * error:+.0f} %"


def counted(count: int, one: str, many: str = "") -> str:
    """Return a count with its noun: "1 product", "1,000 products"."""
    return f"{count:,} {one if count == 1 else many or _PLURALS.get(one, one + 's')}"


def shown(key: str, value: Any) -> str:
    """Return the text of a value, by the unit at the end of its key."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return " ".join(f"{name}={item}" for name, item in value.items())
    if not isinstance(value, int | float):
        return str(value)
    if key.endswith("bytes"):
        return size(value)
    if key.endswith("bytes_per_s"):
        return f"{size(value)}/s"
    if key.endswith("_j"):
        return energy(value)
    if isinstance(value, int):
        return f"{value:,}"
    return time(value) if key.endswith("_s") else f"{value:.3g}"


def _in_units(value: float, units: Mapping[str, float]) -> str:
    *larger, smallest = units
    unit = next((name for name in larger if abs(value) >= _ROUNDS_TO_ONE * units[name]), smallest)
    in_unit = value / units[unit]
    return f"{in_unit:.3g} {unit}" if in_unit < 999.5 else f"{in_unit:,.0f} {unit}"
