"""The chart of the cost of an application."""

import pytest

from sparsecast.operators.applications.application import PRODUCT, Iterations
from sparsecast.reports.charts.shares import shares
from sparsecast.results.application import ApplicationCost, ApplicationRun, LoopCost

LOOPS = (
    LoopCost(PRODUCT, 6e-6, 5e-6, 7e-6),
    LoopCost("L0", 30e-6, 10e-6, None, is_once=True),
    LoopCost("L1", 1e-6, None, 2e-6),
)
COST = ApplicationCost("cg", "p", Iterations(10, 10, 10, "told"), None, LOOPS, None, (), 0.0)


def test_shares_of_loops_count_their_runs(drawn, rows_of):
    rows = rows_of(shares(COST))
    assert [(row["loop"], row["what"]) for row in rows] == [(n, "forecast") for n in (PRODUCT, "L0", "L1")]
    assert [row["share"] for row in rows] == pytest.approx([60, 30, 10])
    assert [row["time_s"] for row in rows] == pytest.approx([60e-6, 30e-6, 10e-6])
    assert [row["low"] for row in rows] == [pytest.approx(50), pytest.approx(10), None]
    assert [row["high"] for row in rows] == [pytest.approx(70), None, pytest.approx(20)]
    assert ">60 %, 60 µs<" in drawn(shares(COST))


def test_a_loop_that_was_not_timed_has_no_measured_share(drawn, rows_of):
    chart = shares(COST, ApplicationRun(5, "converged", 1.0, {PRODUCT: 6e-6, "L0": 10e-6}, 0.0, 6e-6, 0.0))
    measured = {row["loop"]: row for row in rows_of(chart) if row["what"] == "measured"}
    assert {name: row["share"] for name, row in measured.items()} == pytest.approx({PRODUCT: 75, "L0": 25})
    assert measured[PRODUCT]["time_s"] == pytest.approx(30e-6)
    assert ">75 %, 30 µs<" in drawn(chart)
