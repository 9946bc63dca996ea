"""Comparisons of machines: the JSON document and the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from sparsecast.planning.machine_comparison import notes_of
from sparsecast.reports.tables import energy_interval, interval, time
from sparsecast.results.comparison import ComparedMachine


def document(rows: Sequence[ComparedMachine], refused: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """Return the JSON document, best first for each matrix."""
    return {
        "rows": [
            {
                "matrix": row.matrix,
                "machine": row.machine,
                "format": row.format,
                "kernel": row.kernel,
                "products": row.products,
                "time_s": row.time_s,
                "low_s": row.low_s,
                "high_s": row.high_s,
                "energy_j": row.energy_j,
                "energy_low_j": row.energy_low_j,
                "energy_high_j": row.energy_high_j,
                "price": row.price,
                "price_low": row.price_low,
                "price_high": row.price_high,
                "tie": row.is_tie,
                "notes": list(row.notes),
            }
            for row in rows
        ],
        "refused": refused,
    }


def table(title: str, rows: Sequence[ComparedMachine], refused: Mapping[str, Mapping[str, str]]) -> Table:
    """Return the machines of each matrix, the fastest first."""
    found = Table(title=title, title_justify="left", caption_justify="left")
    for name in ("matrix", "machine", "format"):
        found.add_column(name, overflow="fold")
    energies = any(row.energy_j is not None for row in rows)
    prices = any(row.price is not None for row in rows)
    shown = ["time", "interval", "over the fastest", *["energy"] * energies, *["price"] * prices]
    for name in shown:
        found.add_column(name, justify="right")
    fastest = {row.matrix: row for row in reversed(rows)}
    for row in rows:
        ratio = f"{row.time_s / fastest[row.matrix].time_s:.2f} x{' (tie)' if row.is_tie else ''}"
        found.add_row(
            row.matrix if row is fastest[row.matrix] else "",
            row.machine,
            row.format.upper(),
            time(row.time_s),
            interval(row.low_s, row.high_s),
            ratio,
            *[energy_interval(row.energy_j, row.energy_low_j, row.energy_high_j)] * energies,
            *["-" if row.price is None else f"{row.price:.3g}"] * prices,
        )
    lines = [
        f"{matrix} on {machine}: {why}" for matrix, own in refused.items() for machine, why in own.items()
    ]
    ties = "tie: the intervals overlap with that of the fastest, so either may be faster"
    found.caption = "\n".join([*([ties] if any(row.is_tie for row in rows) else []), *notes_of(rows), *lines])
    return found
