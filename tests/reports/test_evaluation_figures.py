"""The figure of an evaluation and the file of its rows."""

from __future__ import annotations

import dataclasses

import pyarrow.parquet
import pytest

from sparsecast.benchmark.evaluation import Scoring
from sparsecast.errors import InputError
from sparsecast.records import Estimate
from sparsecast.reports.evaluation_figures import draw_forecasts, forecast_panels
from sparsecast.reports.row_files import refuse_other_kind, write_rows
from sparsecast.results.evaluation import EVALUATION_ROW
from sparsecast.system.tabular import document


@pytest.fixture
def found(recorded):
    """An evaluation of two formats on two matrices by five models; one of them forecasts energy."""
    scoring = Scoring()
    template = dataclasses.replace(recorded.records[0], energy_j=2e-6, measured_at="2026-01-01T10:00:00")
    for matrix, factor in (("m", 1.0), ("n", 128.0)):
        records = [
            dataclasses.replace(
                template,
                candidate=dataclasses.replace(template.candidate, format=name),
                matrix=matrix,
                time_s=1e-6 * factor,
            )
            for name in ("csr", "ell")
        ]
        scoring.add_records(matrix, records)
        for number, model in enumerate(("best", "b", "c", "d", "joules")):
            value = 1e-6 * factor * (1 + number / 10)
            estimates = [Estimate(r.candidate, value, value / 2, None) for r in records]
            scoring.add_estimates(matrix, model, "energy" if model == "joules" else "time", estimates)
        again = dataclasses.replace(records[0], time_s=1.2e-6 * factor)
        if matrix == "m":
            scoring.add_again(matrix, [again])
    return scoring.evaluation("p")


def test_there_is_a_panel_for_each_model_the_best_first(found):
    panels = forecast_panels(found)
    assert [panel.model for panel in panels] == ["best", "b", "c", "d", "joules"]
    assert panels[0].points == {
        "csr": ((1e-6, 1.28e-4), (1e-6, 1.28e-4)),
        "ell": ((1e-6, 1.28e-4), (1e-6, 1.28e-4)),
    }
    assert panels[1].points["csr"][1] == pytest.approx((1.1e-6, 1.408e-4))
    assert (panels[0].noise, panels[0].noise_name) == (pytest.approx(0.2), "repeat noise, 90 %")
    assert panels[-1].unit == "J"
    assert panels[-1].points["csr"][0] == (2e-6, 2e-6)


def test_without_repeats_the_band_is_the_noise_of_the_records(found):
    rows = [dataclasses.replace(row, again=None) for row in found.rows]
    scores = {
        name: dataclasses.replace(score, repeat_p90=None, median_noise=0.03)
        for name, score in found.models.items()
    }
    first = forecast_panels(dataclasses.replace(found, rows=tuple(rows), models=scores))[0]
    assert (first.noise, first.noise_name) == (0.03, "median noise")


def test_the_figure_names_what_it_shows(found, tmp_path):
    import matplotlib

    path = tmp_path / "evaluation.svg"
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        draw_forecasts(forecast_panels(found), "Forecasts of p", path)
    drawn = path.read_text()
    for text in (
        "Forecasts of p",
        "best",
        "joules",
        "CSR",
        "ELL",
        "repeat noise, 90 %",
        "forecast = measured",
    ):
        assert f">{text}<" in drawn
    assert drawn.count(">measured<") == 5 and "µs<" in drawn and "µJ<" in drawn


def test_a_figure_of_nothing_and_one_that_cannot_be_written_are_refused(found, tmp_path):
    with pytest.raises(InputError, match="would show nothing: expected a forecast"):
        draw_forecasts([], "", tmp_path / "a.png")
    with pytest.raises(InputError, match=r"a\.png cannot be written \(No such file"):
        draw_forecasts(forecast_panels(found), "", tmp_path / "absent" / "a.png")


def test_rows_are_written_with_the_keys_of_the_document(found, tmp_path):
    path = tmp_path / "rows.parquet"
    write_rows(found.rows, path)
    lines = pyarrow.parquet.read_table(path).to_pylist()
    assert len(lines) == len(found.rows) == 20
    for line, row in zip(lines, found.rows, strict=True):
        expected = document(EVALUATION_ROW, row)
        assert set(line) == set(expected)
        known = {name: value for name, value in line.items() if value is not None and name != "parameters"}
        assert known == {k: v for k, v in expected.items() if v is not None and k != "parameters"}
    assert {line["predicted_s"] for line in lines if line["model"] == "joules"} == {None}


def test_rows_that_cannot_be_written_are_said(found, tmp_path):
    with pytest.raises(InputError, match=r"cannot be written \(.*\): expected a file"):
        write_rows(found.rows, tmp_path / "absent" / "rows.parquet")
    with pytest.raises(InputError, match=r"rows\.csv: expected a name that ends in \.parquet"):
        refuse_other_kind(tmp_path / "rows.csv")
