"""The rule of trials: what they are expected to gain, and from how many products on they pay."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsecast.models.fitting import INTERVAL_SHARE
from sparsecast.planning.trials import DOUBT_SHARE, FRESH, LOST_SHARE, Contest, chance, expected_gain_s
from sparsecast.records import Candidate, Forecast
from sparsecast.results.prediction import Trial


def forecast(time_s, low_s, high_s, convert_s=0.0, name="sell"):
    candidate = Candidate(name, "plain", "cpu", "float64", 32, 1)
    return Forecast(candidate, 1, time_s, low_s, high_s, 0, None, convert_s)


def contest(*options, extra_s=0.0, lost_s=0.0):
    csr = Candidate("csr", "plain", "cpu", "float64", 32, 1)
    return Contest(csr, 1.0, list(options), lambda option: (extra_s / 4, extra_s), lost_s)


@pytest.mark.parametrize("factor", (1.2, 2.0, 10.0, 30.0))  # 10 is a scale of 1, where the formula differs
def test_the_expected_gain_is_that_of_times_of_a_laplace_distribution_of_their_logarithm(factor):
    asked = forecast(1.0, 1 / factor, factor)
    assert chance(1 / factor, asked) == pytest.approx((1 - INTERVAL_SHARE) / 2)
    assert chance(factor, asked) == pytest.approx((1 + INTERVAL_SHARE) / 2)
    shares = (np.arange(100_000) + 0.5) / 100_000
    quantiles = np.where(shares < 0.5, np.log(2 * shares), -np.log(2 - 2 * shares))
    drawn = np.exp(quantiles * math.log(factor) / math.log(10))
    for best_s in (0.7, 1.0, 3.0):
        assert chance(best_s, asked) == pytest.approx((drawn < best_s).mean(), abs=1e-4)
        expected = np.maximum(best_s - drawn, 0).mean()
        assert expected_gain_s(best_s, asked) == pytest.approx(expected, rel=1e-3)


@given(
    st.floats(1e-7, 1.0), st.floats(1e-7, 1.0), st.floats(1.0001, 10.0), st.floats(1e-7, 1.0), st.floats(0, 1)
)
def test_a_gain_is_never_negative_nor_beyond_the_best_time_and_grows_with_it(best_s, time_s, factor, more, c):
    option = forecast(time_s, time_s / factor, time_s * factor, c)
    gain_s = expected_gain_s(best_s, option)
    assert 0 <= gain_s <= best_s
    assert expected_gain_s(best_s + more, option) >= gain_s * (1 - 1e-9)
    certain = expected_gain_s(best_s, forecast(time_s, None, None))
    assert certain == pytest.approx(max(0.0, best_s - time_s), abs=1e-11)


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
    gains = asked.net_gain_s(option, products * (1 + 1e-9) + 1e-6) >= 0
    assert gains or asked.cost_s(option) <= DOUBT_SHARE * products * (1 + 1e-9)
    at_worst_s = products * min(1.0, option.high_s)
    spent_s = lost_s + FRESH * convert_s + extra_s
    assert at_worst_s + spent_s <= (1 + LOST_SHARE) * products * (1 + 1e-9)
    assert asked.pays_from(option, 1e12) <= products


def test_of_what_is_tried_the_fastest_is_kept():
    options = [
        forecast(0.6, 0.5, 0.8),
        forecast(0.9, 0.7, 1.1, name="jad"),
        forecast(2.0, 1.5, 3.0, name="ell"),
    ]
    options[1] = forecast(0.9, 0.7, 1.1, 2.0, "jad")
    options[0] = forecast(0.6, 0.5, 0.8, 2.5)
    asked = contest(*options)
    asked.add(Trial(options[0].candidate, 0.6, 10.0, 0.65, 1.0, True), 12.0, 100)
    assert asked.kept == options[0].candidate and asked.best_s == 0.65 and asked.csr_s == 1.0
    assert asked.lost_s == pytest.approx(12.0 - 35.0)
    assert asked.cost_s(options[1]) == pytest.approx(8.0)  # four times its forecast, like that of the other
    asked.add(Trial(options[1].candidate, 0.9), 3.0, 100)
    assert asked.slower == 4.0  # what could not be built says nothing of it
    assert asked.kept == options[0].candidate and asked.lost_s == pytest.approx(-20.0)


def test_a_little_is_spent_on_what_is_unlikely_and_nothing_on_what_is_hopeless():
    unlikely, hopeless = forecast(1.5, 1.2, 1.9, 10.0), forecast(4.0, 3.0, 5.0, 10.0, "jad")
    asked = contest(unlikely, hopeless, lost_s=1.0)
    needed = 10.0 / DOUBT_SHARE
    assert asked.net_gain_s(unlikely, needed) < 0 and asked.pays_from(unlikely, 1e12) == needed
    assert asked.pays_from(hopeless) > 1e7
    assert asked.rank(unlikely, needed) > asked.rank(hopeless, needed)
    another = forecast(1.5, 1.2, 1.9, 10.0, "ell")
    asked.options.append(another)
    asked.add(Trial(unlikely.candidate, 1.5, 10.0, 1.6, 1.0), 10.0, needed)
    assert asked.pays_from(another, 1e12) == pytest.approx(2 * needed)


@pytest.mark.parametrize("unlikely", (True, False))
def test_what_is_close_is_compared_longer_and_costs_more(unlikely):
    option = forecast(3.0, 2.5, 3.6) if unlikely else forecast(0.5, 0.4, 0.6)
    assert contest(option, extra_s=8.0).cost_s(option) == pytest.approx(2.0 if unlikely else 8.0, rel=0.02)
