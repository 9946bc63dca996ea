"""Columns: documents, frames, CSV, Markdown, HTML and texts come from the same list."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import dataclass
from types import SimpleNamespace

import pandas
import pytest

from sparsecast.errors import InputError
from sparsecast.results.columns import within
from sparsecast.system.tabular import Column, Table, document, lines_of


@dataclass
class Row:
    name: str
    time_s: float
    inner: SimpleNamespace | None = None
    note: str | None = None


COLUMNS = (
    Column("name", "name", text=str.upper),
    Column("time_s", "time"),
    Column("", "double", lambda row: 2 * row.time_s, "{:.1f}".format),
    Column("inner", columns=(Column("deep", value="deeper.deepest"),)),
    Column("note", "note"),
)
ROWS = [
    Row("a|<b>", 1e-3, SimpleNamespace(deeper=SimpleNamespace(deepest=(1, math.inf)))),
    Row("b", math.nan),
]
TABLE = Table("what", COLUMNS, ROWS)


def test_documents_have_the_keys_alone_and_nothing_that_json_cannot_hold():
    first, second = TABLE.records()
    assert json.loads(json.dumps(first, allow_nan=False)) == {
        "name": "a|<b>",
        "time_s": 1e-3,
        "inner": {"deep": [1, None]},
        "note": None,
    }
    assert second["time_s"] is None and second["inner"] is None


def test_objects_in_sequences_and_by_name():
    columns = (
        Column("rows", columns=COLUMNS[:1]),
        Column("named", columns=COLUMNS[:1], by="name"),
        *within("only", COLUMNS[:2]),
    )
    item = {"rows": ROWS, "named": {"x": ROWS[1]}, "only": ROWS[0]}
    assert document(columns, item) == {
        "rows": [{"name": "a|<b>"}, {"name": "b"}],
        "named": {"x": {"name": "b"}},
        "name": "a|<b>",
        "time_s": 1e-3,
    }
    assert document(within("only", COLUMNS[:2]), {"only": None}) == {"name": None, "time_s": None}


def test_people_see_headings_texts_and_only_columns_with_values():
    assert TABLE.headings == ("name", "time", "double")
    assert TABLE.cells()[0] == ("A|<B>", "1 ms", "0.0")
    assert Table("", COLUMNS, []).headings == ("name", "time", "double", "note")


def test_csv_has_the_keys_and_what_is_nested_as_json():
    first, second = csv.DictReader(io.StringIO(TABLE.to_csv()))
    assert list(first) == ["name", "time_s", "inner", "note"]
    assert (first["name"], float(first["time_s"]), json.loads(first["inner"])) == (
        "a|<b>",
        1e-3,
        {"deep": [1, None]},
    )
    assert second["time_s"] == ""


def test_markdown_and_html_escape():
    lines = TABLE.to_markdown().splitlines()
    assert lines[:2] == ["| name | time | double |", "| --- | --- | --- |"]
    assert all(line.count("|") == 4 for line in lines) and len(lines) == 4
    assert "<B>" not in TABLE._repr_html_() and "&lt;B&gt;" in TABLE._repr_html_()


def test_html_shows_the_first_rows_of_many():
    many = Table("what", COLUMNS, ROWS[1:] * 31)
    assert many._repr_html_().count("<tr>") == 31 and "1 more rows in to_frame()" in many._repr_html_()


def test_frames(monkeypatch):
    frame = TABLE.to_frame()
    assert isinstance(frame, pandas.DataFrame) and list(frame.columns) == ["name", "time_s", "inner", "note"]
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(InputError):
        TABLE.to_frame()


def test_reasons_name_what_is_missing_once():
    assert lines_of({"ell": "ELL is too large", "dia": "too many"}) == ("ELL is too large", "dia: too many")
