"""How good forecasts are: functions of arrays of forecasts and of what was measured, and of nothing else.

Missing values are NaN in arrays, and None as results.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def floats(values: Iterable[float | None]) -> Floats:
    """Return an array, with NaN for None."""
    return np.array([np.nan if value is None else value for value in values], dtype=float)


def relative_errors(forecasts: Sequence[float] | Floats, measured: Sequence[float] | Floats) -> Floats:
    """Return forecast over measurement, minus 1: negative where the forecast was too low."""
    return np.asarray(np.divide(forecasts, measured) - 1, dtype=float)


@dataclass(frozen=True, slots=True)
class ErrorQuantiles:
    """Mean, median and 90 % quantile of absolute relative errors, and the mean of the signed ones."""

    mean: float
    median: float
    p90: float
    bias: float


def error_quantiles(errors: Floats) -> ErrorQuantiles:
    """Return the statistics of signed relative errors, at least one."""
    size = np.abs(errors)
    return ErrorQuantiles(
        float(size.mean()), float(np.median(size)), float(np.quantile(size, 0.9)), float(errors.mean())
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
    places: dict[Hashable, list[int]] = {}
    for place, question in enumerate(questions):
        places.setdefault(question, []).append(place)
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
