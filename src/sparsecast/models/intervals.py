"""Intervals of forecasts, from the errors on matrices that were held out of a fit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

#: Probability that an interval is meant to hold the measurement with.
INTERVAL_SHARE = 0.9

#: Parts of the groups of matrices that are left out in turn to learn the size of the errors.
INTERVAL_FOLDS = 5

#: From so many ratios on, an interval ends at two of them; fewer do not say where a twentieth lies beyond.
LEAST_RANKED = 39

#: An interval that is wider says no more: two disturbed ratios would make one from 1e-38 to 1e35 seconds.
WIDEST = 1000.0

#: Factor by which an interval grows at both ends where it is carried over to something else, and a profile
#: has nothing to try that on: the 90th percentile of the errors between all settings of one machine, rounded
#: up (decision 30).
UNTRIED_FACTOR = 2.4

#: The low and high end of an interval; None where too little is known for one.
Interval = tuple[float | None, float | None]


def prediction_interval(ratios: Sequence[float]) -> tuple[float, float]:
    """Return the interval that holds the next ratio measured / forecast with probability INTERVAL_SHARE.

    From LEAST_RANKED ratios on it ends at two of them: one more is below the k-th smallest of n with
    probability k / (n + 1), however they scatter. Fewer ratios are taken for factors whose logarithms are
    normally distributed. The interval is then that of one more observation by Student's distribution:
    mean -+ t s sqrt(1 + 1/n), and a factor of WIDEST to each side at most.
    """
    from scipy.special import stdtrit

    count = len(ratios)
    if count >= LEAST_RANKED:
        ordered, beyond = sorted(ratios), int(round((count + 1) * (1 - INTERVAL_SHARE) / 2, 6))
        return ordered[beyond - 1], ordered[count - beyond]
    logarithms = np.log(ratios)
    t = stdtrit(count - 1, (1 + INTERVAL_SHARE) / 2)
    half = min(t * logarithms.std(ddof=1) * np.sqrt(1 + 1 / count), np.log(WIDEST))
    middle = logarithms.mean()
    return float(np.exp(middle - half)), float(np.exp(middle + half))


def conformal_bound(scores: Iterable[float]) -> float | None:
    """Return what the next score is at most with probability INTERVAL_SHARE; None without scores.

    Conformal prediction: it is below the k-th smallest of n with probability k / (n + 1).
    """
    ordered = sorted(scores)
    rank = min(math.ceil(INTERVAL_SHARE * (len(ordered) + 1)), len(ordered))
    return float(ordered[rank - 1]) if ordered else None


def interval_of_product(value: float, *factors: tuple[float, float]) -> tuple[float, float]:
    """Return the interval of a product of independent factors: squares of logarithms add up.

    Of each factor, the ends of measured over forecast are given.
    """
    below, above = (math.hypot(*map(math.log, ends)) for ends in zip(*factors, strict=True))
    return value * math.exp(-below), value * math.exp(above)


def half_width(low: float | None, high: float | None) -> float | None:
    """Return half the width of an interval, of logarithms; None without one that has a width."""
    if low is None or high is None or not 0 < low < high:
        return None
    return math.log(high / low) / 2
