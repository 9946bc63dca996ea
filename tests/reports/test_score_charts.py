"""Charts of an evaluation: forecasts against measurements, and scores."""

import dataclasses

import pytest

from sparsecast.errors import InputError
from sparsecast.reports.charts.scores import agreement, agreements, coverage, errors, noise_band, regret


def test_there_is_a_panel_for_each_model_from_the_least_error(evaluation, drawn, rows_of):
    chart = agreements(evaluation)
    titles = [" ".join(panel["title"]) for panel in chart.spec["concat"]]
    assert [title.partition(":")[0] for title in titles] == list(evaluation.models)
    assert titles[0].endswith("band: repeat noise, 90\u00a0%")
    points = [row for row in rows_of(chart) if "forecast" in row]
    shown = [(p["matrix"], p["format"], p["bytes"], p["ratio"]) for p in points]
    assert sorted(shown) == sorted(
        (
            r.matrix,
            r.estimate.candidate.format.upper(),
            r.record.traffic_bytes,
            r.estimate.value / r.measured,
        )
        for r in evaluation.rows
    )
    assert "B<" in drawn(chart)


def test_the_band_is_what_was_measured_again_or_else_the_noise_of_the_records(evaluation, rows_of):
    score = evaluation.models["best"]
    assert noise_band(score)[0] == pytest.approx(0.2)
    rows = [row for row in evaluation.rows if row.model == "best"]
    band = [row for row in rows_of(agreement(rows, score)) if "at" in row]
    assert {(row["high"], round(1 / row["low"], 9)) for row in band} == {(1.2, 1.2)}
    assert noise_band(dataclasses.replace(score, repeat_p90=None, median_noise=0.03))[0] == 0.03


def test_scores_of_models_and_formats(evaluation, drawn, rows_of):
    score = evaluation.models["b"]
    of_formats = errors("errors", "", score.formats)
    assert [(row["label"], row["value"], row["high"]) for row in rows_of(of_formats)] == [
        (name, pytest.approx(100 * own.median_error), pytest.approx(100 * own.p90_error))
        for name, own in score.formats.items()
    ]
    assert [row["regret"] for row in rows_of(regret(evaluation.models))] == [
        100 * own.regret for own in evaluation.models.values()
    ]
    scores = {name: dataclasses.replace(own, coverage=0.8) for name, own in evaluation.models.items()}
    assert [row["held"] for row in rows_of(coverage(scores))] == [80.0] * len(scores)
    assert coverage(scores | {"none": dataclasses.replace(score, coverage=None)}) == coverage(scores)
    for chart in (of_formats, regret(evaluation.models), coverage(scores)):
        assert "%<" in drawn(chart)


def test_an_evaluation_without_forecasts_is_refused(evaluation):
    with pytest.raises(InputError):
        agreements(dataclasses.replace(evaluation, models={}))
