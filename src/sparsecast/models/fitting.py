"""Straight lines, non-negative least squares on relative residuals, and intervals of forecasts.

Intervals are from the errors on matrices that were held out of a fit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Fewest products of several vectors in a format that tell how long these take.
_LEAST_SEVERAL = 3

#: Steps of `typical_costs`, and the error below which all count alike.
_STEPS, _LEAST_ERROR = 25, 0.05


def fitted_costs(counts: Floats, measured: Floats) -> Floats:
    """Return the costs, all at least 0, with the least sum of squares of counts @ costs / measured - 1.

    The residuals are relative, so that small matrices count as much as large ones.

    `counts` has the shape (measurements, costs), and `measured`, all above 0, (measurements,).
    """
    return nonnegative(counts / measured[:, None], np.ones(len(measured)))


def typical_costs(counts: Floats, measured: Floats) -> Floats:
    """Return the costs with about the least sum of abs(log(counts @ costs / measured)); see `fitted_costs`.

    There a result in a thousandth of its true time is worth more than all others.
    """
    costs = fitted_costs(counts, measured)
    for _ in range(_STEPS):
        forecast = np.maximum(counts @ costs, np.finfo(float).tiny)
        forecast *= np.median(measured / forecast)
        error = np.log(forecast / measured)
        # The logarithm of a ratio is the difference over the logarithmic mean. By a difference and a
        # logarithm, that of the median, which has a ratio of 1, would depend on how processors round.
        mean = measured * np.divide(np.expm1(error), error, out=np.ones_like(error), where=error != 0)
        weight = 1 / (mean * np.sqrt(np.maximum(np.abs(error), _LEAST_ERROR)))
        costs = nonnegative(counts * weight[:, None], measured * weight)
    return costs


def nonnegative(terms: Floats, target: Floats) -> Floats:
    """Return the factors, all at least 0, with the least sum of squares of terms @ factors - target."""
    from scipy.optimize import nnls

    # Columns are scaled to one magnitude: nnls stops at an absolute tolerance.
    scale = np.maximum(terms.max(axis=0), np.finfo(float).tiny)
    return np.asarray(nnls(terms / scale, target)[0] / scale)


def several_factors(formats: NDArray[np.str_], errors: Floats) -> dict[str, float]:
    """Return how many times longer products of several vectors take than their work says, by format.

    `errors` are log(measured / forecast) of measurements, NaN if unknown, whose median counts, and `formats`
    theirs, empty for those of one vector.
    """
    known = np.isfinite(errors)
    own = {str(name): errors[known & (formats == name)] for name in np.unique(formats) if name}
    return {name: float(np.exp(np.median(each))) for name, each in own.items() if len(each) >= _LEAST_SEVERAL}


def above_zero(time_s: Floats, least_s: float) -> Floats:
    """Return times, with `least_s` in the place of those that are not above 0, which no product can take."""
    return np.where(time_s > 0, time_s, least_s)


def between_points(sizes: Floats, values: Floats, at: Floats) -> Floats:
    """Return the mean of the values of the next smaller and the next larger size; beyond all, the last."""
    upper, last = np.searchsorted(sizes, at), len(sizes) - 1
    return np.asarray((values[np.clip(upper - 1, 0, last)] + values[np.clip(upper, 0, last)]) / 2)


@dataclass(frozen=True, slots=True)
class Line:
    """A fitted straight line."""

    slope: float
    intercept: float

    @classmethod
    def through(cls, x: Floats, y: Floats) -> Line:
        """Fit y = slope * x + intercept, both at least 0, to relative residuals.

        One point gives the line through it and the origin. Nothing is relative to a y of 0 (the slope of
        times in which noise has hidden that they grow): its residual counts as that of the least y above 0.
        """
        if not y.any():
            return cls(0.0, 0.0)
        weight = 1 / np.where(y > 0, y, y[y > 0].min())
        target = y * weight
        if len(np.unique(x)) > 1:
            weighted = np.column_stack([x, np.ones(len(x))]) * weight[:, None]
            slope, intercept = np.linalg.lstsq(weighted, target)[0]
            if slope < 0:
                return cls(0.0, float((weight @ target) / (weight @ weight)))
            if intercept >= 0:
                return cls(float(slope), float(intercept))
        ratio = x * weight
        return cls(float((ratio @ target) / (ratio @ ratio)), 0.0)

    @classmethod
    def ordinary(cls, x: Floats, y: Floats) -> Line:
        """Fit y = slope * x + intercept by least squares, with any sign, as papers do that say no more.

        One point gives the line through it and the origin.
        """
        if len(np.unique(x)) < 2:
            return cls(float(y[0] / x[0]), 0.0)
        slope, intercept = np.linalg.lstsq(np.column_stack([x, np.ones(len(x))]), y)[0]
        return cls(float(slope), float(intercept))

    def __call__(self, x: Floats) -> Floats:
        return self.slope * x + self.intercept


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
