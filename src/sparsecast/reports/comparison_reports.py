"""The figure of a comparison of machines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sparsecast.reports.time_figures import TimePanel, TimeRow, draw_times
from sparsecast.results.comparison import ComparedMachine


def panels(rows: Sequence[ComparedMachine]) -> list[TimePanel]:
    """Return a panel for each matrix, with the time and the interval of each machine, in their order."""
    return [
        TimePanel(
            matrix,
            tuple(
                TimeRow(
                    f"{row.machine}, {row.format.upper()}", row.machine, row.time_s, row.low_s, row.high_s
                )
                for row in rows
                if row.matrix == matrix
            ),
        )
        for matrix in dict.fromkeys(row.matrix for row in rows)
    ]


def draw(rows: Sequence[ComparedMachine], title: str, path: Path) -> None:
    """Draw the panels of all matrices into a file of FILE_TYPES; an InputError if it cannot be written."""
    draw_times(panels(rows), title, f"{rows[0].products:,} products", path)
