"""How good the forecasts were: each forecast with its measurement, and each model's score."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from sparsecast.models.model import QUANTITIES
from sparsecast.records import Estimate, Record


@dataclass(frozen=True, slots=True)
class EvaluationRow:
    """One Candidate on one matrix, by name, and what a model expects of its time or energy."""

    matrix: str
    model: str
    quantity: str
    estimate: Estimate
    record: Record

    @property
    def measured(self) -> float:
        """What was measured, in the unit of the quantity."""
        return float(getattr(self.record, QUANTITIES[self.quantity]))

    @property
    def error(self) -> float:
        """Forecast over measurement, minus 1: negative where the forecast was too low."""
        return self.estimate.value / self.measured - 1

    @property
    def is_covered(self) -> bool | None:
        """Whether the interval held the measurement; None without an interval."""
        if self.estimate.low is None or self.estimate.high is None:
            return None
        return self.estimate.low <= self.measured <= self.estimate.high


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
        Mean over all measured matrices: time (or energy) of the Candidate that it chooses over the best of
        all measured, minus 1. Where it forecasts none of them, plain CSR counts as its choice.
    top1 : float
        Share of the matrices whose best Candidate it chooses.
    unforecast : int
        Measured Candidates without a forecast of it.
    """

    quantity: str
    mean_error: float
    median_error: float
    p90_error: float
    coverage: float | None
    regret: float
    top1: float
    unforecast: int


@dataclass(frozen=True)
class Evaluation:
    """Forecasts against measurements over a collection.

    Attributes
    ----------
    models : dict of str to ModelScore
        Of those that forecast something.
    refused : dict of str to str
        Matrices that could not be measured, models that could not forecast, and why.
    interrupted : bool
        Whether the user stopped it; what was done until then is here.
    """

    profile: str
    rows: tuple[EvaluationRow, ...]
    models: dict[str, ModelScore]
    refused: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False


@dataclass
class Scoring:
    """Collects forecasts, and by the matrix' name all that was measured, and scores the models."""

    rows: list[EvaluationRow] = field(default_factory=list)
    measured: dict[str, list[Record]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)

    def add_records(self, matrix: str, records: Iterable[Record]) -> None:
        """Add the measurements of a matrix."""
        self.measured.setdefault(matrix, []).extend(records)

    def add_estimates(self, matrix: str, model: str, quantity: str, estimates: Iterable[Estimate]) -> None:
        """Add the forecasts of a model for a matrix; those without a measurement do not count."""
        known = {record.candidate: record for record in self.measured.get(matrix, ())}
        self.rows += [
            EvaluationRow(matrix, model, quantity, estimate, known[estimate.candidate])
            for estimate in estimates
            if estimate.candidate in known and _value(known[estimate.candidate], quantity) is not None
        ]

    def evaluation(self, profile: str, interrupted: bool = False) -> Evaluation:
        """Return the rows, matrix by matrix and fastest first, and the scores."""
        place = {matrix: number for number, matrix in enumerate(self.measured)}
        rows = sorted(self.rows, key=lambda row: (place[row.matrix], row.record.time_s))
        models = dict.fromkeys((row.model, row.quantity) for row in self.rows)
        scores = {
            model: _score([row for row in rows if row.model == model], self.measured, quantity)
            for model, quantity in models
        }
        return Evaluation(profile, tuple(rows), scores, self.refused, interrupted)


def _value(record: Record, quantity: str) -> float | None:
    value = getattr(record, QUANTITIES[quantity])
    return None if value is None else float(value)


def _score(
    rows: Sequence[EvaluationRow], measured: Mapping[str, Sequence[Record]], quantity: str
) -> ModelScore:
    errors = np.abs([row.error for row in rows])
    covered = [row.is_covered for row in rows if row.is_covered is not None]
    regrets, total = [], 0
    for matrix, records in measured.items():
        values = {record.candidate: _value(record, quantity) for record in records}
        known = {candidate: value for candidate, value in values.items() if value is not None}
        total += len(known)
        own = [row for row in rows if row.matrix == matrix]
        plain = [value for candidate, value in known.items() if candidate.format == "csr"]
        if own or plain:
            chosen = min(own, key=lambda row: row.estimate.value).measured if own else min(plain)
            regrets.append(chosen / min(known.values()) - 1)
    return ModelScore(
        quantity=quantity,
        mean_error=float(errors.mean()),
        median_error=float(np.median(errors)),
        p90_error=float(np.quantile(errors, 0.9)),
        coverage=float(np.mean(covered)) if covered else None,
        regret=float(np.mean(regrets)),
        top1=float(np.mean([regret == 0 for regret in regrets])),
        unforecast=total - len(rows),
    )
