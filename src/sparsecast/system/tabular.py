"""Columns, listed once per result, for text, JSON documents, frames, CSV, Markdown and HTML."""

from __future__ import annotations

import csv
import io
import json
import math
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, TypeVar

from sparsecast.errors import InputError
from sparsecast.system.texts import shown

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    """Return items by their key, in the order in which each key comes first."""
    groups: dict[K, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


Document = dict[str, Any]

#: Rows that a table of HTML shows at most.
_SHOWN = 30


@dataclass(frozen=True, slots=True)
class Column:
    """One value of a row, or one key of a document."""

    key: str  # in documents, frames and CSV files, with the unit at its end; empty for a column of text alone
    heading: str = ""  # in text tables; empty for a column of documents alone
    #: Path of an attribute or key, or a function of the row. By default the key. A path ends at None.
    value: str | Callable[[Any], Any] = ""
    #: Returns the text of a value; by default `texts.shown`, by the unit of the key.
    text: Callable[[Any], str] | None = None
    columns: Columns = ()  # of the value, if it is an object, or a sequence of objects
    by: str = ""  # meaning of the names, if the value is a mapping of names to objects
    about: str = ""  # meaning of the key, where its name does not say it

    def of(self, row: Any) -> Any:
        """Return the value of a row."""
        if callable(self.value):
            return self.value(row)
        value = row
        for name in (self.value or self.key).split("."):
            if value is None:
                return None
            value = value[name] if isinstance(value, Mapping) else getattr(value, name)
        return value

    def plain(self, row: Any) -> Any:
        """Return the value of a row in a form that JSON can hold."""
        value = self.of(row)
        if not self.columns or value is None:
            return plain(value)
        if self.by:
            return {name: document(self.columns, item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [document(self.columns, item) for item in value]
        return document(self.columns, value)

    def cell(self, row: Any) -> str:
        """Return the text of the value of a row."""
        value = self.of(row)
        if value is None:
            return "-"
        return self.text(value) if self.text else shown(self.key, value)


Columns = tuple[Column, ...]


def keys(*names: str) -> Columns:
    """Return columns of documents alone, whose keys are the names of attributes."""
    return tuple(Column(name) for name in names)


def document(columns: Columns, item: Any) -> Document:
    """Return an object, or a mapping, as a JSON document with the keys of the columns."""
    return {column.key: column.plain(item) for column in columns if column.key}


def plain(value: Any) -> Any:
    """Return a value in a form that JSON can hold; NaN and infinity become None."""
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


class Tabular:
    """A result that is a table."""

    __slots__ = ()

    @abstractmethod
    def table(self) -> Table:
        """Return the rows and columns."""

    def to_frame(self) -> Any:
        """Return the rows as a frame of pandas; an InputError if pandas is not installed."""
        try:
            import pandas
        except ImportError as error:
            raise InputError(
                "a frame needs the Python package pandas: expected it to be installed; pip install pandas"
            ) from error
        table = self.table()
        return pandas.DataFrame.from_records(table.records(), columns=table.keys)

    def to_csv(self) -> str:
        """Return the rows as the text of a CSV file."""
        table, file = self.table(), io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table.keys)
        writer.writerows(  # with nested values as JSON
            [(json.dumps(value) if isinstance(value, dict | list) else value) for value in record.values()]
            for record in table.records()
        )
        return file.getvalue()

    def to_markdown(self) -> str:
        """Return the rows as a table of Markdown."""
        table = self.table()
        lines = [table.headings, ("---",) * len(table.headings), *table.cells()]
        return "\n".join(f"| {' | '.join(text.replace('|', '&#124;') for text in line)} |" for line in lines)

    def _repr_html_(self) -> str:
        """Return the table for a notebook, with the first rows of a long one."""
        table = self.table()
        head = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in table.headings)
        lines = Table(table.title, table.shown, table.rows[:_SHOWN]).cells()
        body = "".join(f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in line)}</tr>" for line in lines)
        more = len(table.rows) - _SHOWN
        caption = f"{table.title}; {more:,} more rows in to_frame()" if more > 0 else table.title
        return (
            f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table>"
        )


@dataclass(frozen=True, slots=True)
class Table(Tabular):
    """Rows and their columns."""

    title: str
    columns: Columns
    rows: Sequence[Any]
    below: tuple[str, ...] = ()  # lines below the table: explanations, or what is missing
    most: int = 0  # greatest number of rows in the terminal and on a page; 0 for all

    def table(self) -> Table:
        return self

    @property
    def keys(self) -> list[str]:
        """The keys of a record."""
        return [column.key for column in self.columns if column.key]

    @property
    def shown(self) -> Columns:
        """The columns of the text table: those with a heading, and with a value in at least one row."""
        named = [column for column in self.columns if column.heading]
        if not self.rows:
            return tuple(named)
        return tuple(column for column in named if any(column.of(row) is not None for row in self.rows))

    @property
    def headings(self) -> tuple[str, ...]:
        return tuple(column.heading for column in self.shown)

    def cells(self) -> list[tuple[str, ...]]:
        """Return the texts of each row."""
        columns = self.shown
        return [tuple(column.cell(row) for column in columns) for row in self.rows]

    def records(self) -> list[Document]:
        """Return each row as a JSON document."""
        return [document(self.columns, row) for row in self.rows]


def lines_of(refused: Mapping[str, str]) -> tuple[str, ...]:
    """Return a line for each missing item with its reason; a reason beginning with the name stands alone."""
    begins = {name: why.lower().startswith(name.lower()) for name, why in refused.items()}
    return tuple(why if begins[name] else f"{name}: {why}" for name, why in refused.items())
