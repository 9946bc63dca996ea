"""The page of a comparison of machines: time, energy and price of each, with intervals, and ties."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from sparsecast.reports.charts.chart import Chart
from sparsecast.reports.charts.intervals import intervals, machine_rows
from sparsecast.reports.pages.rendering import page
from sparsecast.results.placement import Comparison, Placement
from sparsecast.system.texts import counted


def comparison_page(matrices: Sequence[str], comparison: Comparison) -> str:
    """Return the page as HTML; `matrices` are as given by the user."""
    sections: list[dict[str, Any]] = [
        {
            "place": f"matrix-{place}",
            "name": name,
            "answer": " ".join(answer.sentences()) if answer.placements else "No machine has a forecast.",
            "charts": _charts(answer.placements, f"matrix-{place}"),
            "table": answer.table(),
            "refused": answer.refused,
        }
        for place, (name, answer) in enumerate(comparison.answers.items())
    ]
    products = counted(comparison.rows[0].products, "product")
    return page(
        "comparison.html",
        [chart for section in sections for chart in section["charts"]],
        title="Machines compared",
        subtitle=f"Forecast of {products} y = A x on {counted(len(comparison.machines), 'machine')}",
        notes=comparison.notes,
        matrices=sections,
        machine_rows=list(comparison.machines.items()),
        command=_command(matrices, comparison),
    )


def _charts(compared: Sequence[Placement], place: str) -> list[Chart]:
    """Return a chart for each quantity of at least one machine."""
    caption = "Forecast {} of all products on each machine, the best first; the bar holds 90 of 100."
    quantities = (("time", "total", "s"), ("energy", "energy", "J"), ("price", "price", ""))
    drawn = [(name, machine_rows(compared, quantity), unit) for name, quantity, unit in quantities]
    return [
        intervals(f"{place}-{name}", caption.format(name), rows, name, unit)
        for name, rows, unit in drawn
        if any(row["value"] is not None for row in rows)
    ]


def _command(matrices: Sequence[str], comparison: Comparison) -> str:
    machines, products = ",".join(comparison.machines), comparison.rows[0].products
    prices = {row.machine: row.price_per_hour for row in comparison.rows if row.price_per_hour is not None}
    priced = [f"--price {shlex.quote(f'{name}={price:g}/h')}" for name, price in prices.items()]
    given = " ".join(map(shlex.quote, matrices))
    return " ".join(
        ["sparsecast compare", given, "--machines", shlex.quote(machines), f"--products {products}", *priced]
    )
