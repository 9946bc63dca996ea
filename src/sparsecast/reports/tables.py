"""Tables for people: the most important comes first, and every time has its unit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from rich.table import Table

from sparsecast.system.texts import energy as energy
from sparsecast.system.texts import energy_interval as energy_interval
from sparsecast.system.texts import interval as interval
from sparsecast.system.texts import percent as percent
from sparsecast.system.texts import size as size
from sparsecast.system.texts import time as time


def numbers(title: str, *headings: str) -> Table:
    """Return a table without rows, whose columns of numbers are aligned to the right."""
    table = Table(title=title, title_justify="left", caption_justify="left", min_width=len(title))
    words = (
        "method",
        "format",
        "kernel",
        "matrix",
        "model",
        "way",
        "rows",
        "device",
        "machine",
        "setting",
        "figure",
    )
    for heading in headings:
        justify: Literal["left", "right"] = "left" if heading in words else "right"
        table.add_column(heading, justify=justify, no_wrap=heading != "matrix")
    return table


def add_refused(table: Table, refused: Mapping[str, str]) -> None:
    """Put below a table what was refused, and why."""
    if refused:
        table.caption = "\n".join(refused.values())
