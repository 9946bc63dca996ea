"""The page of a comparison of machines: time, energy and price of each, with intervals, and ties."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sparsecast.reports.charts.chart import Chart
from sparsecast.reports.charts.intervals import Row, intervals, row
from sparsecast.reports.pages.rendering import page
from sparsecast.results.placement import Comparison, Placement, Placements, notes_of
from sparsecast.system import texts
from sparsecast.system.texts import counted


@dataclass(frozen=True)
class MachineReport:
    """Data of the page of a comparison."""

    matrices: Sequence[str]  # as given by the user
    comparison: Comparison
    machines: Mapping[str, str]  # content and source of each profile
    prices: Mapping[str, float] = field(default_factory=dict)  # per hour
    products: int = 1


def comparison_page(report: MachineReport) -> str:
    """Return the page as HTML."""
    drawn: list[Chart] = []
    sections = []
    for place, (name, answer) in enumerate(report.comparison.answers.items()):
        charts = _charts(answer.placements, f"matrix-{place}")
        table = replace(answer, refused={}).table()
        drawn += charts
        sections.append(
            {
                "place": f"matrix-{place}",
                "name": name,
                "answer": _answer(answer),
                "charts": [chart.name for chart in charts],
                "head": table.headings,
                "rows": table.cells(),
                "refused": list(answer.refused.items()),
            }
        )
    return page(
        "comparison.html",
        drawn,
        title="Machines compared",
        subtitle=f"Forecast of {counted(report.products, 'product')} y = A x on "
        f"{counted(len(report.machines), 'machine')}",
        notes=notes_of(report.comparison.rows),
        matrices=sections,
        machine_rows=list(report.machines.items()),
        command=_command(report),
    )


def _answer(compared: Placements) -> str:
    """Return a sentence: the best machine, and those that may be as fast."""
    if not compared.placements:
        return "No machine has a forecast."
    best = compared.best
    sentence = f"Best: {best.machine} in {best.formats}, {texts.time(best.total_s)}"
    ties = [row.machine for row in compared.placements if row.is_tie]
    if ties:
        return f"{sentence}. A tie with {', '.join(ties)}: the intervals overlap, so either may be faster."
    if best.total_low_s is None:
        return f"{sentence}. Its interval is unknown, so ties are unknown, too."
    several = len(compared.placements) > 1
    return f"{sentence}. No other interval overlaps with it." if several else f"{sentence}."


def _charts(compared: Sequence[Placement], place: str) -> list[Chart]:
    """Return a chart for each quantity of at least one machine."""
    values: dict[str, tuple[str, list[Row]]] = {
        "time": ("s", [_point(r, compared, (r.total_s, r.total_low_s, r.total_high_s)) for r in compared]),
        "energy": ("J", [_point(r, compared, r.total_j) for r in compared]),
        "price": ("", [_point(r, compared, r.prices) for r in compared]),
    }
    caption = "Forecast {} of all products on each machine, the best first; the bar holds 90 of 100."
    return [
        intervals(f"{place}-{name}", caption.format(name), rows, name, unit)
        for name, (unit, rows) in values.items()
        if any(point["value"] is not None for point in rows)
    ]


def _point(
    placement: Placement,
    compared: Sequence[Placement],
    value: tuple[float | None, float | None, float | None],
) -> Row:
    place = "best" if placement is compared[0] else "tie, by time" if placement.is_tie else "slower"
    label = f"{placement.machine}, {placement.formats}"
    return row(label, placement.machine, place, *value)


def _command(report: MachineReport) -> str:
    prices = [f"--price {shlex.quote(f'{name}={price:g}/h')}" for name, price in report.prices.items()]
    machines = f"--machines {shlex.quote(','.join(report.machines))}"
    arguments = [*map(shlex.quote, report.matrices), machines, f"--products {report.products}", *prices]
    return f"sparsecast compare {' '.join(arguments)}"
