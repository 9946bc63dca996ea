"""What the experiment of a paper returns: its tables with our columns, as text, documents and a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from sparsecast.results.columns import within
from sparsecast.system.tabular import Column, Columns, Table, keys


def known_mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are known; None without any."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


@dataclass(frozen=True, slots=True)
class PaperItem:
    """What became of a part of a paper, and why.

    `state` is ``"done"``, ``"differs"``, ``"not built"`` or ``"cannot be had here"``.
    """

    item: str
    state: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper that is repeated here."""

    name: str  # of its experiment
    authors: str
    title: str
    forecasts: str  # what it forecasts
    headline: str  # its own result, as printed
    never_run: str  # what was never run here, and why
    items: tuple[PaperItem, ...] = ()
    notes: tuple[str, ...] = ()  # what the page says whatever is measured


@dataclass(frozen=True)
class PaperReport:
    """The tables of a paper with our columns."""

    paper: Paper
    machine: str  # where our numbers come from
    #: Each title names the table or figure of the paper. What was not measured is None.
    tables: tuple[Table, ...]
    charts: Mapping[str, Any] = field(default_factory=dict)  # by the name of the file
    notes: tuple[str, ...] = ()
    #: Our result next to the headline of the paper; the list of papers shows the last one of each machine.
    ours: str = ""

    @property
    def item_table(self) -> Table:
        """What is done, differs, or cannot be had."""
        return Table("Items of the paper", ITEM, self.paper.items)

    def to_markdown(self, command: str) -> str:
        """Return the page of the paper, which says by which command it was made."""
        paper, lines = self.paper, [f"# {self.paper.name}", ""]
        lines += [f"{paper.authors}: {paper.title}.", "", f"Made by `{command}`, on {self.machine}.", ""]
        lines += [f"- Forecasts: {paper.forecasts}", f"- The paper: {paper.headline}", f"- Ours: {self.ours}"]
        lines += [f"- Never run here: {paper.never_run}", ""]
        lines += [part for note in self.notes for part in (note, "")]
        lines += [part for name in self.charts for part in (f"![{name}]({name}.svg)", "")]
        for table in (*self.tables, self.item_table):
            below = [part for line in table.below for part in (line, "")]
            if 0 < table.most < len(table.rows):
                below.insert(0, f"The first {table.most} of {len(table.rows):,} rows; `--json` has all.\n")
                table = replace(table, columns=table.shown, rows=table.rows[: table.most])
            lines += [f"## {table.title}", "", table.to_markdown(), "", *below]
        return "\n".join(lines)


PAPER: Columns = (
    Column("name", "name"),
    *keys("authors", "title"),
    Column("forecasts", "forecasts"),
    Column("headline", "the paper's result"),
    Column("never_run", "never run here"),
)

#: Of a mapping with a paper, and ours: our last result of each machine, by its name.
LISTED: Columns = (
    *within("paper", PAPER[:-1]),
    Column(
        "ours",
        "ours",
        text=lambda ours: "; ".join(f"{machine}: {result}" for machine, result in ours.items()) or "not run",
        about="the last result by machine; empty where the experiment was not run",
    ),
    *within("paper", PAPER[-1:]),
)

ITEM: Columns = (Column("item", "item"), Column("state", "state"), Column("why", "why"))

_TABLE: Columns = (
    Column("title"),
    Column("rows", value=lambda table: table.records(), about="keys are those of the table in CSV"),
)

_STATES = "state is done, differs, not built, or cannot be had here"

DOCUMENTS: dict[str, Columns] = {
    "paper": (Column("papers", columns=LISTED),),
    "paper NAME": (
        Column("paper", columns=PAPER),
        Column("machine", about="where our numbers come from"),
        Column("tables", columns=_TABLE),
        Column("items", "", "paper.items", columns=ITEM, about=_STATES),
        *keys("ours", "notes"),
    ),
}
