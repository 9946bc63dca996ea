"""How good the forecasts were: each forecast beside its measurement, and each model's score."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from sparsecast.records import Forecast, Record


@dataclass(frozen=True, slots=True)
class EvaluationRow:
    """One Candidate on one matrix.

    Attributes
    ----------
    matrix, model : str
    forecast : Forecast
    record : Record
    """

    matrix: str
    model: str
    forecast: Forecast
    record: Record

    @property
    def error(self) -> float:
        """Forecast over measured time, minus 1: negative where the forecast was too fast."""
        return self.forecast.time_s / self.record.time_s - 1

    @property
    def is_covered(self) -> bool | None:
        """Whether the interval held the measurement; None without an interval."""
        if self.forecast.low_s is None or self.forecast.high_s is None:
            return None
        return self.forecast.low_s <= self.record.time_s <= self.forecast.high_s


@dataclass(frozen=True, slots=True)
class ModelScore:
    """A model over a collection of matrices.

    Attributes
    ----------
    mean_error, median_error, p90_error : float
        Of the absolute relative errors of all forecasts.
    coverage : float or None
        Share of the measurements within their intervals.
    regret : float
        Mean over the matrices: time of the candidate forecast fastest over the best time, minus 1.
    top1 : float
        Share of the matrices whose best candidate was forecast fastest.
    """

    mean_error: float
    median_error: float
    p90_error: float
    coverage: float | None
    regret: float
    top1: float


@dataclass(frozen=True)
class Evaluation:
    """Forecasts against measurements over a collection.

    Attributes
    ----------
    profile : str
    rows : tuple of EvaluationRow
    models : dict of str to ModelScore
    refused : dict of str to str
        Matrices that could not be read, and why.
    """

    profile: str
    rows: tuple[EvaluationRow, ...]
    models: dict[str, ModelScore]
    refused: dict[str, str]


def pair(
    matrix: str, model: str, forecasts: Iterable[Forecast], records: Iterable[Record]
) -> list[EvaluationRow]:
    """Return a row for every forecast whose Candidate was measured, fastest measurement first."""
    measured = {record.candidate: record for record in records}
    rows = [
        EvaluationRow(matrix, model, forecast, measured[forecast.candidate])
        for forecast in forecasts
        if forecast.candidate in measured
    ]
    return sorted(rows, key=lambda row: row.record.time_s)


def scores(rows: Sequence[EvaluationRow]) -> dict[str, ModelScore]:
    """Return the score of every model that forecast one of `rows`."""
    models = dict.fromkeys(row.model for row in rows)
    return {model: _score([row for row in rows if row.model == model]) for model in models}


def _score(rows: Sequence[EvaluationRow]) -> ModelScore:
    errors = np.abs([row.error for row in rows])
    covered = [row.is_covered for row in rows if row.is_covered is not None]
    regrets = []
    for matrix in dict.fromkeys(row.matrix for row in rows):
        own = [row for row in rows if row.matrix == matrix]
        chosen = min(own, key=lambda row: row.forecast.time_s)
        regrets.append(chosen.record.time_s / min(row.record.time_s for row in own) - 1)
    return ModelScore(
        mean_error=float(errors.mean()),
        median_error=float(np.median(errors)),
        p90_error=float(np.quantile(errors, 0.9)),
        coverage=float(np.mean(covered)) if covered else None,
        regret=float(np.mean(regrets)),
        top1=float(np.mean([regret == 0 for regret in regrets])),
    )
