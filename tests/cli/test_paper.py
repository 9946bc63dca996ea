"""sparsecast paper: the list, an experiment on stored numbers, and what is refused."""

from __future__ import annotations

import pytest


def test_the_list_says_of_each_paper_what_it_forecasts_and_what_never_ran(run, exact):
    listed = exact(run("paper", "--json"), "paper")["papers"]
    assert all(paper["forecasts"] and paper["headline"] and paper["never_run"] for paper in listed)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (("nowhere",), "nowhere"),
        (("hossain-saule", "gallery:poisson2d?n=30"), "gallery:poisson2d?n=30"),
        (("hossain-saule", "--dtype", "float32"), "float32"),
        (("hossain-saule", "--from", "nowhere"), "nowhere"),
    ],
)
def test_what_cannot_be_is_one_line(run, data_folder, line, value):
    outcome = run("paper", *line)
    assert (outcome.status, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert value in outcome.err


def test_forecasts_stand_beside_those_of_the_paper(run, exact, data_folder, tmp_path):
    outcome = run("paper", "hossain-saule", "--figure", tmp_path, "--json")
    report = exact(outcome, "paper NAME")
    assert all(table["rows"] for table in report["tables"])
    assert {item["state"] for item in report["items"]} == {"done", "differs", "cannot be had here"}
    page = (tmp_path / "hossain-saule.md").read_text(encoding="utf-8")
    assert all(f"## {table['title']}\n" in page for table in report["tables"])
    assert (tmp_path / "hossain-saule.svg").exists()
