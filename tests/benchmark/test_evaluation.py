"""Scores against a computation by hand."""

from __future__ import annotations

import dataclasses

import pytest

from sparsecast.benchmark.evaluation import Scoring
from sparsecast.records import Estimate


@pytest.fixture
def scoring():
    return Scoring()


@pytest.fixture
def take(recorded, scoring):
    """Take forecasts and measurements of a matrix: format -> (forecast, low, high, measured)."""
    template = recorded.records[0]

    def rows(matrix, model, ways, quantity="time"):
        estimates, records = [], []
        for name, (value, low, high, measured) in ways.items():
            candidate = dataclasses.replace(template.candidate, format=name)
            if value is not None:
                estimates.append(Estimate(candidate, value, low, high))
            name = {"time": "time_s", "energy": "energy_j"}[quantity]
            records.append(dataclasses.replace(template, candidate=candidate, **{name: measured}))
        if matrix not in scoring.measured:
            scoring.add_records(matrix, [r for r in records if r.time_s is not None])
        scoring.add_estimates(matrix, model, quantity, estimates)
        return [row for row in scoring.evaluation("p").rows if (row.matrix, row.model) == (matrix, model)]

    return rows


def test_what_was_not_measured_is_left_out_and_rows_are_sorted_by_measurement(take, scoring, recorded):
    rows = take("m", "a", {"csr": (1.0, None, None, 3.0), "ell": (2.0, None, None, 1.0)})
    assert [row.estimate.candidate.format for row in rows] == ["ell", "csr"]
    other = dataclasses.replace(recorded.records[0].candidate, format="jad")
    scoring.add_estimates("m", "a", "time", [Estimate(other, 1.0, None, None)])
    assert len(scoring.evaluation("p").rows) == 2


def test_an_error_is_signed_and_relative_to_the_measurement(take):
    fast, slow = take("m", "a", {"csr": (3.0, 2.0, 4.0, 2.0), "ell": (1.0, 1.0, 2.0, 4.0)})
    assert fast.error == 0.5
    assert slow.error == -0.75
    assert fast.is_covered
    assert not slow.is_covered
    assert take("n", "a", {"csr": (1.0, None, None, 1.0)})[0].is_covered is None


def test_scores_by_hand(take, scoring):
    # Forecast best: ell; measured best: csr. Errors 0.5, 0.5. The regret is 4 / 2 - 1 = 1.
    take("one", "a", {"csr": (3.0, 2.0, 4.0, 2.0), "ell": (2.0, 1.0, 3.0, 4.0)})
    # Forecast best and measured best: csr. Errors 0.1, 0. No regret.
    take("two", "a", {"csr": (1.1, 1.0, 1.2, 1.0), "ell": (5.0, 4.0, 6.0, 5.0)})
    take("one", "b", {"csr": (2.0, None, None, 2.0)})
    found = scoring.evaluation("p").models
    assert list(found) == ["a", "b"]
    a, b = found["a"], found["b"]
    assert a.mean_error == pytest.approx((0.5 + 0.5 + 0.1 + 0.0) / 4)
    assert a.median_error == pytest.approx((0.1 + 0.5) / 2)
    assert a.p90_error == pytest.approx(0.5)
    assert a.coverage == pytest.approx(3 / 4)
    assert a.regret == pytest.approx(1 / 2)
    assert a.top1 == pytest.approx(1 / 2)
    assert a.unforecast == 0
    # It has no forecast of three measured ways; on the second matrix plain CSR counts as its choice.
    assert dataclasses.astuple(b) == ("time", 0.0, 0.0, 0.0, None, 0.0, 1.0, 3)


def test_a_format_without_a_forecast_counts_in_the_regret(take, scoring):
    take("m", "a", {"csr": (1.0, None, None, 3.0), "ell": (None, None, None, 1.0)})
    score = scoring.evaluation("p").models["a"]
    assert (score.regret, score.top1, score.unforecast) == (2.0, 0.0, 1)


def test_plain_csr_is_the_choice_where_nothing_is_forecast(take, scoring):
    take("m", "a", {"csr": (1.0, None, None, 1.0)})
    take("n", "a", {"csr": (None, None, None, 3.0), "ell": (None, None, None, 2.0)})
    score = scoring.evaluation("p").models["a"]
    assert (score.regret, score.top1) == (pytest.approx(0.25), 0.5)


def test_coverage_counts_the_forecasts_that_have_an_interval(take, scoring):
    take("m", "a", {"csr": (1.0, 0.5, 2.0, 1.0), "ell": (1.0, None, None, 9.0)})
    assert scoring.evaluation("p").models["a"].coverage == 1.0


def test_energy_is_compared_with_joules_and_not_with_times(take, scoring):
    take("m", "joules", {"csr": (3.0, None, None, 2.0)}, quantity="energy")
    (row,) = scoring.evaluation("p").rows
    assert (row.measured, row.error) == (2.0, 0.5)
    assert scoring.evaluation("p").models["joules"].quantity == "energy"


def test_no_rows_have_no_scores(scoring):
    assert scoring.evaluation("p").models == {}
