"""Comparisons of machines: the JSON document, the table, and the figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from sparsecast.planning.machine_comparison import ComparedMachine, notes_of
from sparsecast.reports.figures import COLOURS, save
from sparsecast.reports.tables import energy_interval, interval, time

#: Height of a machine's line in a panel, and of what else a panel has, in inches.
_LINE, _REST = 0.28, 0.9


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


def draw(rows: Sequence[ComparedMachine], title: str, path: Path) -> None:
    """Draw a panel for each matrix, with the time and the interval of each machine, into a file.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    matrices = list(dict.fromkeys(row.matrix for row in rows))
    machines = sorted({row.machine for row in rows})
    colours = {name: COLOURS[place % len(COLOURS)] for place, name in enumerate(machines)}
    by_matrix = [[row for row in rows if row.matrix == matrix] for matrix in matrices]
    height = sum(_REST + _LINE * len(own) for own in by_matrix)
    ratios = [_REST + _LINE * len(own) for own in by_matrix]
    figure = Figure(figsize=(7.0, height + 0.4), layout="constrained")
    axes = figure.subplots(len(matrices), 1, squeeze=False, height_ratios=ratios)[:, 0]
    for ax, own, matrix in zip(axes, by_matrix, matrices, strict=True):
        for place, row in enumerate(own):
            if row.low_s is not None and row.high_s is not None:
                ax.hlines(place, row.low_s, row.high_s, colors=colours[row.machine], linewidth=4, alpha=0.4)
            ax.plot(row.time_s, place, marker="o", color=colours[row.machine])
        ax.set_yticks(range(len(own)), [f"{row.machine}, {row.format.upper()}" for row in own])
        ax.set_ylim(len(own) - 0.5, -0.5)
        ax.set_xscale("log")
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda seconds, place: time(seconds)))
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.set_title(matrix, fontsize="medium", loc="left")
        ax.set_xlabel(f"{own[0].products:,} products")
    figure.suptitle(title)
    save(figure, path)
