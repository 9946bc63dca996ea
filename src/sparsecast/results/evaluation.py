"""Forecasts beside measurements, and the scores of models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sparsecast.matrices.problem import group_of
from sparsecast.models.forecaster import QUANTITIES
from sparsecast.records import Estimate, Record
from sparsecast.system.tabular import Tabular


@dataclass(frozen=True, slots=True)
class EvaluationRow:
    """One Candidate on one matrix, by name, and what a model expects of its time or energy.

    Attributes
    ----------
    again : Record or None
        The same measured once more, later in the same evaluation; None where it was not.
    """

    matrix: str
    model: str
    quantity: str
    estimate: Estimate
    record: Record
    again: Record | None = None

    @property
    def group(self) -> str:
        """The group that the matrix belongs to in cross-validation."""
        return group_of(self.record.matrix)

    @property
    def measured(self) -> float:
        """What was measured, in the unit of the quantity."""
        return float(getattr(self.record, QUANTITIES[self.quantity]))

    @property
    def measured_again(self) -> float | None:
        """What was measured of the same later, in the same unit."""
        return None if self.again is None else _measured(self.again, self.quantity)

    @property
    def error(self) -> float:
        """Forecast over measurement, minus 1: negative where the forecast was too low."""
        return self.estimate.value / self.measured - 1

    @property
    def repeat_difference(self) -> float | None:
        """Difference of the two measurements, relative to the first: the error of a perfect forecast."""
        return None if self.measured_again is None else abs(self.measured_again / self.measured - 1)

    @property
    def is_covered(self) -> bool | None:
        """Whether the interval held the measurement; None without an interval."""
        if self.estimate.low is None or self.estimate.high is None:
            return None
        return self.estimate.low <= self.measured <= self.estimate.high


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorScore:
    """The errors of a model's forecasts, and what repeated measurements of the same differ by.

    Attributes
    ----------
    forecasts : int
        That were compared with a measurement.
    mean_error, median_error, p90_error : float
        Of the absolute relative errors.
    bias : float
        Mean of the signed relative errors: negative where the forecasts are too low.
    coverage, mean_width : float or None
        Share of the measurements within their intervals, and mean width of these, relative to the forecast.
    median_noise : float or None
        Median noise of the Records.
    repeat_median, repeat_p90 : float or None
        Relative difference of what was measured again later; None where nothing was.
    """

    forecasts: int
    mean_error: float
    median_error: float
    p90_error: float
    bias: float
    coverage: float | None = None
    mean_width: float | None = None
    median_noise: float | None = None
    repeat_median: float | None = None
    repeat_p90: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelScore(ErrorScore):
    """A model over a collection of matrices.

    Attributes
    ----------
    regret, worst_ratio : float
        Of the ratios, one for each measured matrix: time (or energy) of the Candidate that the model chooses
        over that of the best of all measured. The regret is their geometric mean minus 1, the other the
        largest. Where the model forecasts none of a matrix' Candidates, plain CSR counts as its choice.
    top1 : float
        Share of the matrices whose best Candidate it chooses, or one that is slower by no more than the
        noise of the best one's Record.
    unforecast : int
        Measured Candidates without a forecast of it.
    forecast_products, forecast_products_large, forecast_products_very_large : float or None
        Time to forecast all Candidates of a matrix, its Structure included, over that of one product in
        plain CSR: the median, and the largest of matrices with at least LARGE_NNZ and VERY_LARGE_NNZ
        entries. None where it was not measured.
    formats : dict of str to ErrorScore
    worst : tuple of (str, float)
        The matrices with the largest errors, and for each the median of the signed errors of its Candidates.
    """

    quantity: str
    regret: float
    worst_ratio: float
    top1: float
    unforecast: int
    forecast_products: float | None = None
    forecast_products_large: float | None = None
    forecast_products_very_large: float | None = None
    formats: Mapping[str, ErrorScore] = field(default_factory=dict)
    worst: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Repeats:
    """What was measured once more, later in an evaluation.

    Attributes
    ----------
    matrices, candidates : int
        How many matrices, and Candidates of them together.
    median, p90 : float
        Of the absolute differences of the two times, relative to the first.
    after_s : float
        Median of the seconds between the two.
    """

    matrices: int
    candidates: int
    median: float
    p90: float
    after_s: float


@dataclass(frozen=True)
class Evaluation(Tabular):
    """Forecasts against measurements over a collection.

    Attributes
    ----------
    models : dict of str to ModelScore
        Of those that forecast something, the best first: by the median error over all measured Candidates,
        where one without a forecast counts as infinitely wrong.
    refused : dict of str to str
        Matrices that could not be measured, models that could not forecast, and why.
    interrupted : bool
        Whether the user stopped it; what was done until then is here.
    repeats : Repeats or None
        None where nothing was measured again.
    taken_over : int
        Matrices of which nothing was measured, because all was kept within the hour before.
    """

    profile: str
    rows: tuple[EvaluationRow, ...]
    models: dict[str, ModelScore]
    refused: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False
    repeats: Repeats | None = None
    taken_over: int = 0

    def table_rows(self) -> list[dict[str, Any]]:
        """Return a row for each model, the best first."""
        return [
            {
                "model": name,
                "quantity": score.quantity,
                "forecasts": score.forecasts,
                "median_error": score.median_error,
                "mean_error": score.mean_error,
                "p90_error": score.p90_error,
                "coverage": score.coverage,
                "regret": score.regret,
                "top1": score.top1,
                "unforecast": score.unforecast,
            }
            for name, score in self.models.items()
        ]

    def table_caption(self) -> str:
        """Return the machine, and how much was forecast."""
        return f"Models on {self.profile}: errors of {len(self.rows):,} forecasts"


def _measured(record: Record, quantity: str) -> float | None:
    value = getattr(record, QUANTITIES[quantity])
    return None if value is None else float(value)
