"""What commands return, and how it is printed: as text, JSON, CSV, Markdown and a figure."""

from __future__ import annotations

import functools
import inspect
import json
import sys
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO, TypeAlias

import rich.table
import typer
from rich.console import Console

from sparsecast.cli import options
from sparsecast.system.files import write_file

if TYPE_CHECKING:
    from sparsecast.reports.charts.chart import Chart
    from sparsecast.system.tabular import Columns, Table

#: A chart and its title.
Drawn: TypeAlias = "tuple[Chart, str]"

#: Characters that a column of text keeps where a table is too wide.
_LEAST_TEXT = 14


@dataclass(frozen=True, slots=True)
class Output:
    """The result of a command."""

    columns: Columns  # the keys of its JSON document
    item: Any  # what has their values
    #: Tables and sentences that people read. `--csv` writes the first table, `--markdown` all of it.
    shown: Iterable[Any]
    notes: Iterable[str] = ()  # warnings, which go to standard error before all else
    #: Returns the chart of the figure and its title, or None where there is nothing to draw.
    chart: Callable[[], Drawn | None] | None = None
    #: What became of the measurements, where the command was stopped from the keyboard: "kept", "shown".
    stopped: str = ""
    status: int = 0  # exit status
    #: Whether people read it on standard error, as standard output is another program's.
    is_beside: bool = False
    all_rows: Table | None = None  # what `--csv` writes where people read a part of it

    def show(
        self,
        as_json: bool,
        *,
        csv: Path | None = None,
        markdown: Path | None = None,
        figure: Path | None = None,
    ) -> None:
        """Print the result, and write the files that are asked for."""
        from sparsecast.system.tabular import Table, document

        options.warn(self.notes)
        if figure is not None and self.chart is not None and (drawn := self.chart()) is not None:
            from sparsecast.reports.charts.chart import render

            render(*drawn, figure)
        shown = list(self.shown)
        if csv is not None:
            table = self.all_rows or next(item for item in shown if isinstance(item, Table))
            write_file(csv, table.to_csv().encode())
        if markdown is not None:
            parts: list[str] = []  # as a forge shows them: tables with their titles, and sentences
            for item in shown:
                if isinstance(item, Table):
                    parts += [f"**{item.title}**"] if item.title else []
                    parts += [item.to_markdown(), *item.below]
                else:
                    parts.append(str(item))
            write_file(markdown, ("\n\n".join(parts) + "\n").encode())
        if as_json:
            print(json.dumps(document(self.columns, self.item), allow_nan=False))
        else:
            _print(shown, sys.stderr if self.is_beside else sys.stdout)
        if self.stopped:
            line = f"{options.STOPPED_LINE}: what was measured until then is {self.stopped}"
            raise options.StoppedError(line)
        if self.status:
            raise typer.Exit(self.status)


def printed(run: Callable[..., Output | None], *, figure: bool, csv: bool) -> Callable[..., None]:
    """Return a command that prints what `run` returns, with options for the ways of doing so.

    The fields of a parameter that is a dataclass are options. None is not printed: it is what ranks other
    than the first return.
    """
    signature = inspect.signature(run)
    hints = typing.get_type_hints(run, include_extras=True)
    groups = {name: hints[name] for name in signature.parameters if is_dataclass(hints[name])}
    parameters = []
    for item in signature.parameters.values():
        group = groups.get(item.name)
        options_of = [item] if group is None else inspect.signature(group).parameters.values()
        own = hints if group is None else typing.get_type_hints(group, include_extras=True)
        parameters += [option.replace(annotation=own[option.name]) for option in options_of]
    ways: dict[str, Any] = {
        **({"figure": (options.FigureOption, None)} if figure else {}),
        **({"csv": (options.CsvOption, None), "markdown": (options.MarkdownOption, None)} if csv else {}),
        "as_json": (options.JsonOption, False),
    }
    added = [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=kind)
        for name, (kind, default) in ways.items()
        if name not in signature.parameters
    ]

    @functools.wraps(run)
    def command(**arguments: Any) -> None:
        files = {name: arguments.get(name) for name in ("csv", "markdown", "figure")}
        options.refuse_figure(files["figure"])
        for path in filter(None, files.values()):
            options.refuse_unwritable(path)
        # A program that is run may leave the folder.
        files = {name: path and path.absolute() for name, path in files.items()}
        passed = {name: value for name, value in arguments.items() if name in signature.parameters}
        for name, group in groups.items():
            passed[name] = group(**{field.name: arguments[field.name] for field in fields(group)})
        output = run(**passed)
        if output is not None:
            output.show(arguments["as_json"], **files)

    command.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*parameters, *added], return_annotation=None
    )
    command.__annotations__ = {item.name: item.annotation for item in [*parameters, *added]}
    return command


def _print(shown: Iterable[Any], stream: TextIO) -> None:
    from sparsecast.system.tabular import Table

    # Wide enough for a table where standard output is no terminal; a terminal wraps the sentences. Names of
    # files may have brackets, which are no markup.
    width = None if stream.isatty() else 140
    page = Console(file=stream, highlight=False, markup=False, width=width)
    for item in shown:
        if isinstance(item, Table):
            hidden = len(item.rows) - item.most if item.most else 0
            more = (f"and {hidden:,} more rows",) if hidden > 0 else ()
            for part in (item.title, _rich(item), *more, *item.below):
                page.print(part, soft_wrap=isinstance(part, str))
        else:
            page.print(item, soft_wrap=isinstance(item, str))


def _rich(table: Table) -> rich.table.Table:
    """Return a table for the terminal, with columns of numbers aligned to the right."""
    drawn = rich.table.Table()
    rows = table.cells()[: table.most or None]
    for number, column in enumerate(table.shown):
        is_text = all(isinstance(column.of(row), str | Mapping | None) for row in table.rows)
        widest = max((len(cells[number]) for cells in rows), default=0)
        # Long headings are broken between words, numbers never; text may be, but keeps some width.
        least = min(widest, _LEAST_TEXT) if is_text else widest
        justify: Literal["left", "right"] = "left" if is_text else "right"
        drawn.add_column(column.heading, justify=justify, min_width=least, overflow="fold")
    for cells in rows:
        drawn.add_row(*cells)
    return drawn
