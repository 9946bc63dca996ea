"""How good forecasts are: functions of arrays of forecasts and of what was measured, and of nothing else.

Missing values are NaN in arrays, and None as results.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from sparsecast.results.evaluation import ErrorScore
from sparsecast.system.grouping import grouped

Floats = NDArray[np.float64]


def floats(values: Iterable[float | None]) -> Floats:
    """Return an array, with NaN for None."""
    return np.array([np.nan if value is None else value for value in values], dtype=float)


def relative_errors(forecasts: Sequence[float] | Floats, measured: Sequence[float] | Floats) -> Floats:
    """Return forecast over measurement, minus 1: negative where the forecast was too low."""
    return np.asarray(np.divide(forecasts, measured) - 1, dtype=float)


def error_score(
    forecasts: tuple[Floats, Floats, Floats], measured: Floats, noises: Floats, repeats: Floats
) -> ErrorScore:
    """Return the score of forecasts, at least one: their values with the ends of their intervals.

    `repeats` are the relative differences of what was measured once more.
    """
    values, low, high = forecasts
    errors = relative_errors(values, measured)
    return ErrorScore(
        forecasts=len(errors),
        mean_error=float(np.abs(errors).mean()),
        median_error=float(np.median(np.abs(errors))),
        p90_error=float(np.quantile(np.abs(errors), 0.9)),
        bias=float(errors.mean()),
        coverage=coverage(low, high, measured),
        mean_width=mean((high - low) / values),
        median_noise=quantile(noises, 0.5),
        repeat_median=quantile(repeats, 0.5),
        repeat_p90=quantile(repeats, 0.9),
    )


def coverage(low: Floats, high: Floats, measured: Floats) -> float | None:
    """Return the share of the measurements within their intervals; None without intervals."""
    has_ends = ~(np.isnan(low) | np.isnan(high))
    return mean(((low <= measured) & (measured <= high))[has_ends].astype(float))


def choice_ratios(questions: Sequence[Hashable], forecasts: Floats, measured: Floats) -> Floats:
    """Return chosen over best measurement of each question with two measurements or more.

    Parameters
    ----------
    questions : sequence of hashable
        What each measurement is an answer to; one without any forecast is no choice.
    forecasts, measured : array
        Of each measurement. The least forecast is chosen.
    """
    places = grouped(range(len(questions)), lambda place: questions[place])
    answers = [np.array(own) for own in places.values() if len(own) > 1]
    return np.array(
        [
            measured[own[np.nanargmin(forecasts[own])]] / measured[own].min()
            for own in answers
            if not np.isnan(forecasts[own]).all()
        ]
    )


def regret(ratios: Sequence[float] | Floats) -> float:
    """Return the geometric mean of chosen over best, at least one, minus 1."""
    return float(np.exp(np.log(ratios).mean())) - 1


def mean(values: Floats) -> float | None:
    """Return the mean of what is known; None where nothing is."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def quantile(values: Floats, share: float) -> float | None:
    """Return a quantile of what is known; None where nothing is."""
    known = values[~np.isnan(values)]
    return float(np.quantile(known, share)) if len(known) else None
