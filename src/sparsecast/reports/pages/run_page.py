"""The page of a program: where its sparse products are, and what plans save of their time."""

from __future__ import annotations

from sparsecast.reports.charts.intervals import Row, intervals, row
from sparsecast.reports.pages.rendering import page
from sparsecast.results.watching import Seen

#: Matrices that the chart shows.
_DRAWN = 20


def run_page(seen: Seen, program: str) -> str:
    """Return the page as HTML; `program` is its command line."""
    table, rows = seen.table(), _times(seen)
    caption = "Time of all products of each matrix; by a plan with its interval, the plan itself paid."
    return page(
        "run.html",
        [intervals("products", caption, rows, "all products", "s")] if rows else [],
        title=program,
        sentences=seen.sentences(),
        notes=seen.notes,
        head=table.headings,
        rows=table.cells(),
        unplanned=[f"{p.counted.kind.place}: {p.unplanned}" for p in seen.products if p.unplanned],
    )


def _times(seen: Seen) -> list[Row]:
    rows: list[Row] = []
    for number, products in enumerate(seen.products[:_DRAWN], 1):
        place, time_s = products.counted.kind.place, products.counted.time_s
        label = f"{number}. {place}, {products.counted.kind.format.upper()}"
        rows.append(row(label, place, "as it ran", time_s, None, None))
        if (saving := products.saving) is not None and not seen.is_applied:
            ends = saving.time_s, saving.high_s, saving.low_s
            rows.append(row(label, place, "by a plan", *(time_s - (end or 0.0) for end in ends)))
    return rows
