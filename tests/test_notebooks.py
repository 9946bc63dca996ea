"""Results in notebooks: tables of HTML that escape names, and frames with one row for each of their rows."""

from __future__ import annotations

from html.parser import HTMLParser

import pandas
import pytest

import sparsecast as sc
from sparsecast.api import replay
from sparsecast.errors import InputError
from sparsecast.system.tabular import html_table


class Table(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.cells = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)

    def handle_data(self, data):
        self.cells.append(data)


@pytest.fixture(scope="module")
def results(recorded):
    A = sc.gallery("circuit", n=3000)
    return {
        "prediction": sc.predict(A, recorded, threads=1),
        "plan": sc.plan(A, recorded, threads=1),
        "structure": sc.structure(A),
        "profile": recorded,
        "evaluation": replay(recorded, threads=1, models=["linear"]),
    }


@pytest.mark.parametrize("name", ["prediction", "plan", "structure", "profile", "evaluation"])
def test_a_result_is_a_table_and_a_frame(results, name):
    result = results[name]
    rows = result.table_rows()
    frame = result.to_frame()
    assert len(frame) == len(rows) > 0 and list(frame.columns) == list(rows[0])
    table = Table(result._repr_html_())
    shown = min(len(rows), 30)
    assert table.tags.count("tr") == 1 + shown
    assert table.tags.count("td") == shown * len(rows[0])
    assert result.table_caption() in table.cells[0]
    assert ("more rows in to_frame()" in table.cells[0]) == (len(rows) > shown)


def test_times_are_numbers_of_the_forecasts(results):
    found, frame = results["prediction"], results["prediction"].to_frame()
    assert frame["time_s"].tolist() == [each.time_s for each in found]
    assert isinstance(frame, pandas.DataFrame) and frame["energy_j"].isna().all()


def test_names_are_no_markup_and_nothing_is_a_dash():
    table = html_table("<b>", [{"<i>": None, "count": 1234, "time_s": 0.000123456, "is_it": True}])
    assert "<b>" not in table and "<i>" not in table
    assert Table(table).cells == ["<b>", "<i>", "count", "time_s", "is_it", "-", "1,234", "0.000123", "True"]
    assert Table(html_table("nothing", [])).tags.count("td") == 0


def test_without_pandas_it_is_said_what_to_install(results, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(InputError, match="pip install pandas"):
        results["plan"].to_frame()
    assert results["plan"]._repr_html_()
