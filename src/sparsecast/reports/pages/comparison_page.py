"""The page of a comparison of machines: time, energy and price of each, with intervals, and ties."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sparsecast.reports.charts.chart import Chart
from sparsecast.reports.charts.intervals import Row, intervals, row
from sparsecast.reports.pages.rendering import page
from sparsecast.results.comparison import ComparedMachine, notes_of
from sparsecast.system import texts

_HEAD = "machine", "format", "time", "interval", "over the fastest", "energy", "price"


@dataclass(frozen=True)
class MachineReport:
    """What the page of a comparison is drawn from.

    Attributes
    ----------
    matrices : sequence of str
        As they were asked for.
    rows : sequence of ComparedMachine
    refused : mapping of str to mapping of str to str
        Why a machine has no row, by matrix and machine.
    machines : mapping of str to str
        What each profile holds, and where it is from.
    prices : mapping of str to float
        Of an hour.
    products : int
    """

    matrices: Sequence[str]
    rows: Sequence[ComparedMachine]
    refused: Mapping[str, Mapping[str, str]]
    machines: Mapping[str, str]
    prices: Mapping[str, float] = field(default_factory=dict)
    products: int = 1


def comparison_page(found: MachineReport) -> str:
    """Return the page as HTML.

    Raises
    ------
    InputError
        If a library that draws it is missing.
    """
    names = list(dict.fromkeys([*(row.matrix for row in found.rows), *found.refused]))
    drawn: list[Chart] = []
    sections = []
    for place, name in enumerate(names):
        own = [row for row in found.rows if row.matrix == name]
        own_charts = _charts(own, f"matrix-{place}")
        drawn += own_charts
        sections.append(
            {
                "place": f"matrix-{place}",
                "name": name,
                "answer": _answer(own),
                "charts": [chart.name for chart in own_charts],
                "rows": [_cells(row, own[0]) for row in own],
                "refused": list(found.refused.get(name, {}).items()),
            }
        )
    return page(
        "comparison.html",
        drawn,
        title="Machines compared",
        subtitle=f"Forecast of {found.products:,} products y = A x on {len(found.machines)} machines",
        notes=notes_of(found.rows),
        matrices=sections,
        head=_HEAD,
        machine_rows=list(found.machines.items()),
        command=_command(found),
    )


def _answer(own: Sequence[ComparedMachine]) -> str:
    """Return in a sentence which machine is the fastest, and which may be as fast."""
    if not own:
        return "No machine has a forecast."
    first = own[0]
    said = f"Fastest: {first.machine} in {first.format.upper()}, {texts.time(first.time_s)}"
    ties = [row.machine for row in own if row.is_tie]
    if ties:
        return f"{said}. A tie with {', '.join(ties)}: the intervals overlap, so either may be faster."
    if first.low_s is None:
        return f"{said}. Its interval is unknown, so ties are unknown, too."
    return f"{said}. No other interval overlaps with its own." if len(own) > 1 else f"{said}."


def _cells(row: ComparedMachine, first: ComparedMachine) -> tuple[str, ...]:
    price = "-" if row.price is None else f"{row.price:.3g}"
    if row.price_low is not None and row.price_high is not None:
        price += f" ({row.price_low:.3g} - {row.price_high:.3g})"
    return (
        row.machine,
        row.format.upper(),
        texts.time(row.time_s),
        texts.interval(row.low_s, row.high_s),
        f"{row.time_s / first.time_s:.2f} x{' (tie)' if row.is_tie else ''}",
        texts.energy_interval(row.energy_j, row.energy_low_j, row.energy_high_j),
        price,
    )


def _charts(own: Sequence[ComparedMachine], place: str) -> list[Chart]:
    """Return a chart for each quantity that at least one machine has."""
    values: dict[str, tuple[str, list[Row]]] = {
        "time": ("s", [_point(r, own[0], r.time_s, r.low_s, r.high_s) for r in own]),
        "energy": ("J", [_point(r, own[0], r.energy_j, r.energy_low_j, r.energy_high_j) for r in own]),
        "price": ("", [_point(r, own[0], r.price, r.price_low, r.price_high) for r in own]),
    }
    caption = "Forecast {} of all products on each machine, fastest first; the bar holds 90 of 100."
    return [
        intervals(f"{place}-{name}", caption.format(name), rows, name, unit)
        for name, (unit, rows) in values.items()
        if any(point["value"] is not None for point in rows)
    ]


def _point(
    compared: ComparedMachine,
    first: ComparedMachine,
    value: float | None,
    low: float | None,
    high: float | None,
) -> Row:
    place = "fastest" if compared is first else "tie, by time" if compared.is_tie else "slower"
    return row(f"{compared.machine}, {compared.format.upper()}", compared.machine, place, value, low, high)


def _command(found: MachineReport) -> str:
    prices = [f"--price {shlex.quote(f'{name}={price:g}/h')}" for name, price in found.prices.items()]
    machines = f"--machines {shlex.quote(','.join(found.machines))}"
    asked = [*map(shlex.quote, found.matrices), machines, f"--products {found.products}", *prices]
    return f"sparsecast compare {' '.join(asked)}"
