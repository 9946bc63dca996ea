"""--figure of the commands: the file shows what the table does, and what cannot be drawn is one line."""

import importlib.util
import json
import re

import pytest

from .conftest import complains

MATRIX = "gallery:poisson2d?n=12"


def test_each_command_draws_what_it_shows(run, calibrated, tmp_path):
    path = tmp_path / "figure.svg"
    for line, texts in (
        (("structure", MATRIX), ("entries of a row",)),
        (("predict", MATRIX, "--threads", "1"), ("one product",)),
        (("plan", MATRIX, "--threads", "1"), ("conversion and all products", "products", "column")),
        (("machines",), ("FLOP per byte", "CSR", "COO")),
    ):
        asked = run(*line, "--figure", path, "--json")
        assert asked.status == 0, asked.err
        document, drawn = json.loads(asked.out), path.read_text()
        for text in texts:
            assert f">{text}<" in drawn, (line, text)
        for forecast in document.get("forecasts", ()):
            assert f">{forecast['format'].upper()}, {forecast['kernel']}<" in drawn
        path.unlink()


@pytest.mark.parametrize(
    "line",
    [
        ("structure", MATRIX),
        ("predict", MATRIX),
        ("plan", MATRIX),
        ("cost", "cg", MATRIX),
        ("measure", MATRIX),
        ("machines",),
    ],
)
def test_what_cannot_be_drawn_is_one_line_and_nothing_is_measured(
    run, data_folder, tmp_path, monkeypatch, line
):
    wrong = [("a.bmp", "expected a name that ends in .png"), ("absent/a.svg", "cannot be written")]
    for name, expected in wrong:
        complains(run(*line, "--figure", tmp_path / name), re.escape(expected))
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "vl_convert" else find(name)
    )
    missing = run(*line, "--figure", tmp_path / "a.svg")
    assert (missing.status, missing.err.count("\n")) == (2, 1)
    assert "needs the Python package vl-convert-python" in missing.err
    assert not list(data_folder.rglob("*.parquet"))


def test_a_table_of_more_matrices_than_a_figure_shows_is_refused_before_anything_is_measured(
    run, data_folder, tmp_path
):
    table = tmp_path / "many.csv"
    table.write_text("matrix,rows,cols,nnz\n" + "".join(f"m{n},100,100,500\n" for n in range(401)))
    complains(run("predict", table, "--figure", tmp_path / "a.svg"))
    assert not list(data_folder.rglob("*.parquet"))


def test_a_profile_of_machines_is_drawn_or_left_out(run, data_folder, tmp_path):
    alone = run("machines", "--profile", "xeon-gold-6154-edr")
    assert (alone.status, alone.err.count("\n")) == (2, 1) and "without --figure" in alone.err
    empty = run("machines", "--profile", "xeon-gold-6154-edr", "--figure", tmp_path / "a.svg")
    assert empty.status == 2 and "would show nothing" in empty.err
