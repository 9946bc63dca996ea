"""The rule of trials: what they are expected to gain, and from how many products on they pay."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsecast.models.intervals import INTERVAL_SHARE
from sparsecast.planning.trials import FRESH, LOST_SHARE, Contest, expected_gain_s
from sparsecast.records import Candidate, Forecast
from sparsecast.results.trials import Trial


def forecast(time_s, low_s, high_s, convert_s=0.0, name="sell"):
    candidate = Candidate(name, "plain", "cpu", "float64", 32, 1)
    return Forecast(candidate, 1, time_s, low_s, high_s, 0, None, convert_s)


def contest(*options, extra_s=0.0, lost_s=0.0):
    csr = Candidate("csr", "plain", "cpu", "float64", 32, 1)
    return Contest(csr, 1.0, list(options), lambda option: extra_s, lost_s)


def test_the_expected_gain_is_that_of_times_that_are_normal_in_their_logarithm():
    low_s, high_s = 0.5, 2.0
    deviation = math.log(high_s / low_s) / 2 / 1.6448536269514722  # INTERVAL_SHARE is 0.9
    assert INTERVAL_SHARE == 0.9
    drawn = np.exp(np.random.default_rng(0).normal(0.0, deviation, 1_000_000))
    for best_s in (0.7, 1.0, 3.0):
        expected = np.maximum(best_s - drawn, 0).mean()
        assert expected_gain_s(best_s, forecast(1.0, low_s, high_s)) == pytest.approx(expected, rel=0.01)


@given(
    st.floats(1e-7, 1.0), st.floats(1e-7, 1.0), st.floats(1.0001, 10.0), st.floats(1e-7, 1.0), st.floats(0, 1)
)
def test_a_gain_is_never_negative_nor_beyond_the_best_time_and_grows_with_it(best_s, time_s, factor, more, c):
    option = forecast(time_s, time_s / factor, time_s * factor, c)
    gain_s = expected_gain_s(best_s, option)
    assert 0 <= gain_s <= best_s
    assert expected_gain_s(best_s + more, option) >= gain_s * (1 - 1e-9)
    assert expected_gain_s(best_s, forecast(time_s, None, None)) == max(0.0, best_s - time_s)


@given(
    st.floats(0.1, 2.0),
    st.floats(1.01, 3.0),
    st.floats(0.01, 100.0),
    st.floats(0.0, 50.0),
    st.floats(0, 50.0),
)
def test_what_pays_gains_its_cost_and_may_lose_a_small_share(time_s, factor, convert_s, extra_s, lost_s):
    option = forecast(time_s, time_s / factor, time_s * factor, convert_s)
    asked = contest(option, extra_s=extra_s, lost_s=lost_s)
    products = asked.pays_from(option)
    if math.isinf(products):
        assert expected_gain_s(1.0, option) == 0
        return
    assert asked.net_gain_s(option, products * (1 + 1e-9) + 1e-6) >= 0
    at_worst_s = products * min(1.0, option.high_s)
    spent_s = lost_s + FRESH * convert_s + extra_s
    assert at_worst_s + spent_s <= (1 + LOST_SHARE) * products * (1 + 1e-9)
    assert asked.pays_from(option, 1e12) <= products


def test_of_what_is_tried_the_fastest_is_kept_and_contenders_reach_below_it():
    options = [
        forecast(0.6, 0.5, 0.8),
        forecast(0.9, 0.7, 1.1, name="jad"),
        forecast(2.0, 1.5, 3.0, name="ell"),
    ]
    options[1] = forecast(0.9, 0.7, 1.1, 2.0, "jad")
    options[0] = forecast(0.6, 0.5, 0.8, 2.5)
    asked = contest(*options)
    assert [f.candidate.format for f in asked.contenders()] == ["sell", "jad"]
    asked.add(Trial(options[0].candidate, 0.6, 10.0, 0.65, 1.0, True), 12.0, 100)
    assert asked.kept == options[0].candidate and asked.best_s == 0.65 and asked.csr_s == 1.0
    assert asked.lost_s == pytest.approx(12.0 - 35.0) and not asked.contenders()
    assert asked.cost_s(options[1]) == pytest.approx(8.0)  # four times its forecast, like that of the other
    asked.add(Trial(options[1].candidate, 0.9), 3.0, 100)
    assert asked.kept == options[0].candidate and asked.lost_s == pytest.approx(-20.0)
