"""The page of a comparison of machines: time, energy and price of each, with intervals, and ties."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sparsecast.reports.charts.chart import Chart
from sparsecast.reports.charts.intervals import Row, intervals, row
from sparsecast.reports.pages.rendering import page
from sparsecast.results.comparison import ComparedMachine, Comparison, notes_of
from sparsecast.system import texts
from sparsecast.system.texts import counted


@dataclass(frozen=True)
class MachineReport:
    """Data of the page of a comparison.

    Attributes
    ----------
    matrices : sequence of str
        As given by the user.
    rows : sequence of ComparedMachine
    refused : mapping of str to mapping of str to str
        Why a machine has no row, by matrix and machine.
    machines : mapping of str to str
        Content and source of each profile.
    prices : mapping of str to float
        Per hour.
    products : int
    """

    matrices: Sequence[str]
    rows: Sequence[ComparedMachine]
    refused: Mapping[str, Mapping[str, str]]
    machines: Mapping[str, str]
    prices: Mapping[str, float] = field(default_factory=dict)
    products: int = 1


def comparison_page(report: MachineReport) -> str:
    """Return the page as HTML."""
    names = list(dict.fromkeys([*(row.matrix for row in report.rows), *report.refused]))
    drawn: list[Chart] = []
    sections = []
    for place, name in enumerate(names):
        compared = [row for row in report.rows if row.matrix == name]
        charts = _charts(compared, f"matrix-{place}")
        table = Comparison(compared, {}).table("")
        drawn += charts
        sections.append(
            {
                "place": f"matrix-{place}",
                "name": name,
                "answer": _answer(compared),
                "charts": [chart.name for chart in charts],
                "head": table.headings,
                "rows": table.cells(),
                "refused": list(report.refused.get(name, {}).items()),
            }
        )
    return page(
        "comparison.html",
        drawn,
        title="Machines compared",
        subtitle=f"Forecast of {counted(report.products, 'product')} y = A x on "
        f"{counted(len(report.machines), 'machine')}",
        notes=notes_of(report.rows),
        matrices=sections,
        machine_rows=list(report.machines.items()),
        command=_command(report),
    )


def _answer(compared: Sequence[ComparedMachine]) -> str:
    """Return a sentence: the fastest machine, and those that may be as fast."""
    if not compared:
        return "No machine has a forecast."
    first = compared[0]
    sentence = f"Fastest: {first.machine} in {first.format.upper()}, {texts.time(first.time_s)}"
    ties = [row.machine for row in compared if row.is_tie]
    if ties:
        return f"{sentence}. A tie with {', '.join(ties)}: the intervals overlap, so either may be faster."
    if first.low_s is None:
        return f"{sentence}. Its interval is unknown, so ties are unknown, too."
    return f"{sentence}. No other interval overlaps with it." if len(compared) > 1 else f"{sentence}."


def _charts(compared: Sequence[ComparedMachine], place: str) -> list[Chart]:
    """Return a chart for each quantity of at least one machine."""
    values: dict[str, tuple[str, list[Row]]] = {
        "time": ("s", [_point(r, compared[0], r.time_s, r.low_s, r.high_s) for r in compared]),
        "energy": (
            "J",
            [_point(r, compared[0], r.energy_j, r.energy_low_j, r.energy_high_j) for r in compared],
        ),
        "price": ("", [_point(r, compared[0], r.price, r.price_low, r.price_high) for r in compared]),
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


def _command(report: MachineReport) -> str:
    prices = [f"--price {shlex.quote(f'{name}={price:g}/h')}" for name, price in report.prices.items()]
    machines = f"--machines {shlex.quote(','.join(report.machines))}"
    arguments = [*map(shlex.quote, report.matrices), machines, f"--products {report.products}", *prices]
    return f"sparsecast compare {' '.join(arguments)}"
