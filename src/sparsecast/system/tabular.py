"""Results as tables of HTML, which notebooks show by themselves, and as frames of pandas."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from sparsecast.errors import InputError

#: Rows that a table of HTML shows at most.
_SHOWN = 30

Row = Mapping[str, Any]


class Tabular:
    """Something that is a table: a subclass gives its rows and what is above them."""

    __slots__ = ()

    @abstractmethod
    def table_rows(self) -> Sequence[Row]:
        """Return the rows, each with the same columns, named with their units."""

    @abstractmethod
    def table_caption(self) -> str:
        """Return what the table is of."""

    def to_frame(self) -> Any:
        """Return the rows as a frame of pandas."""
        try:
            import pandas
        except ImportError as error:
            raise InputError(
                "a frame needs the Python package pandas: expected it to be installed; pip install pandas"
            ) from error
        return pandas.DataFrame.from_records([dict(row) for row in self.table_rows()])

    def _repr_html_(self) -> str:
        """Return the table for a notebook."""
        return html_table(self.table_caption(), self.table_rows())


def html_table(caption: str, rows: Sequence[Row]) -> str:
    """Return rows as a table of HTML, the first ones where there are many."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in (rows[0] if rows else ()))
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(_text(value))}</td>" for value in row.values()) + "</tr>"
        for row in rows[:_SHOWN]
    )
    left = len(rows) - _SHOWN
    more = f"; {left:,} more rows in to_frame()" if left > 0 else ""
    return (
        f"<table><caption>{escape(caption + more)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>"
    )


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
