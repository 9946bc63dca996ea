"""Scores against a computation by hand."""

from __future__ import annotations

import dataclasses

import pytest

from sparsecast.benchmark.evaluation import pair, scores
from sparsecast.records import Forecast


@pytest.fixture
def make(recorded):
    """Make the rows of a matrix from format -> (forecast, low, high, measured)."""
    template = recorded.records[0]

    def rows(matrix, model, ways):
        forecasts, records = [], []
        for name, (time_s, low_s, high_s, measured_s) in ways.items():
            candidate = dataclasses.replace(template.candidate, format=name)
            forecasts.append(Forecast(candidate, 10, time_s, low_s, high_s, 0, None, 0.0))
            records.append(dataclasses.replace(template, candidate=candidate, time_s=measured_s))
        return pair(matrix, model, forecasts, records)

    return rows


def test_pair_leaves_out_what_was_not_measured_and_sorts_by_measurement(make, recorded):
    rows = make("m", "a", {"csr": (1.0, None, None, 3.0), "ell": (2.0, None, None, 1.0)})
    assert [row.forecast.candidate.format for row in rows] == ["ell", "csr"]
    assert pair("m", "a", [row.forecast for row in rows], [rows[0].record]) == [rows[0]]
    assert pair("m", "a", [], [rows[0].record]) == []


def test_an_error_is_signed_and_relative_to_the_measurement(make):
    (slow, fast) = make("m", "a", {"csr": (3.0, 2.0, 4.0, 2.0), "ell": (1.0, 1.0, 2.0, 4.0)})
    assert slow.error == 0.5
    assert fast.error == -0.75
    assert slow.is_covered
    assert not fast.is_covered
    assert make("m", "a", {"csr": (1.0, None, None, 1.0)})[0].is_covered is None


def test_scores_by_hand(make):
    rows = [
        # Forecast best: ell; measured best: csr. Errors 0.5, 0.5. The regret is 4 / 2 - 1 = 1.
        *make("one", "a", {"csr": (3.0, 2.0, 4.0, 2.0), "ell": (2.0, 1.0, 3.0, 4.0)}),
        # Forecast best and measured best: csr. Errors 0.1, 0. No regret.
        *make("two", "a", {"csr": (1.1, 1.0, 1.2, 1.0), "ell": (5.0, 4.0, 6.0, 5.0)}),
        *make("one", "b", {"csr": (2.0, None, None, 2.0)}),
    ]
    found = scores(rows)
    assert list(found) == ["a", "b"]
    a, b = found["a"], found["b"]
    assert a.mean_error == pytest.approx((0.5 + 0.5 + 0.1 + 0.0) / 4)
    assert a.median_error == pytest.approx((0.1 + 0.5) / 2)
    assert a.p90_error == pytest.approx(0.5)
    assert a.coverage == pytest.approx(3 / 4)
    assert a.regret == pytest.approx(1 / 2)
    assert a.top1 == pytest.approx(1 / 2)
    assert dataclasses.astuple(b) == (0.0, 0.0, 0.0, None, 0.0, 1.0)


def test_coverage_counts_the_forecasts_that_have_an_interval(make):
    rows = make("m", "a", {"csr": (1.0, 0.5, 2.0, 1.0), "ell": (1.0, None, None, 9.0)})
    assert scores(rows)["a"].coverage == 1.0


def test_no_rows_have_no_scores():
    assert scores([]) == {}
