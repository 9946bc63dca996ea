"""How good the forecasts were: each forecast with its measurement, and each model's score."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Any

import numpy as np

from sparsecast.benchmark import scores
from sparsecast.matrices.problem import group_of
from sparsecast.models.model import QUANTITIES
from sparsecast.records import Candidate, Estimate, Record
from sparsecast.system.tabular import Tabular

#: Matrices that a score names as those with the largest errors.
_WORST = 3

#: From so many entries on a matrix is large, and from so many very large: what its forecasts cost is told.
LARGE_NNZ, VERY_LARGE_NNZ = 1_000_000, 10_000_000


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
        return None if self.again is None else _value(self.again, self.quantity)

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


def distinct_names(names: Mapping[str, str]) -> dict[str, str]:
    """Return by specification the name of each matrix, or its specification where another has that name."""
    given = list(names.values())
    return {key: name if given.count(name) == 1 else key for key, name in names.items()}


@dataclass
class Scoring:
    """Collects forecasts, and by the matrix' name all that was measured, and scores the models.

    `again` is what was measured once more, `costs_s` by matrix and model the seconds that its forecasts took.
    """

    rows: list[EvaluationRow] = field(default_factory=list)
    measured: dict[str, list[Record]] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    again: dict[tuple[str, Candidate], Record] = field(default_factory=dict)
    costs_s: dict[tuple[str, str], float] = field(default_factory=dict)
    taken_over: int = 0

    def add_records(self, matrix: str, records: Iterable[Record]) -> None:
        """Add the measurements of a matrix."""
        self.measured.setdefault(matrix, []).extend(records)

    def add_again(self, matrix: str, records: Iterable[Record]) -> None:
        """Add what was measured of a matrix once more."""
        self.again |= {(matrix, record.candidate): record for record in records}

    def add_estimates(self, matrix: str, model: str, quantity: str, estimates: Iterable[Estimate]) -> None:
        """Add the forecasts of a model for a matrix; those without a measurement do not count."""
        known = {record.candidate: record for record in self.measured.get(matrix, ())}
        self.rows += [
            EvaluationRow(matrix, model, quantity, estimate, known[estimate.candidate])
            for estimate in estimates
            if estimate.candidate in known and _value(known[estimate.candidate], quantity) is not None
        ]

    def evaluation(self, profile: str, interrupted: bool = False) -> Evaluation:
        """Return the rows, matrix by matrix and fastest first, and the scores, best first."""
        place = {matrix: number for number, matrix in enumerate(self.measured)}
        rows = [
            dataclasses.replace(row, again=self._later(row.matrix, row.record))
            for row in sorted(self.rows, key=lambda row: (place[row.matrix], row.record.time_s))
        ]
        models = dict.fromkeys((row.model, row.quantity) for row in rows)
        own = {model: [row for row in rows if row.model == model] for model, _ in models}
        scored = {model: self._score(own[model], model, quantity) for model, quantity in models}
        ranked = sorted(scored, key=lambda model: _rank(scored[model], own[model]))
        return Evaluation(
            profile,
            tuple(rows),
            {model: scored[model] for model in ranked},
            self.refused,
            interrupted,
            self._repeats(),
            self.taken_over,
        )

    def _later(self, matrix: str, first: Record) -> Record | None:
        """Return what was measured once more, after a Record; what is older is of an earlier evaluation."""
        again = self.again.get((matrix, first.candidate))
        return None if again is None or again.measured_at < first.measured_at else again

    def _score(self, rows: Sequence[EvaluationRow], model: str, quantity: str) -> ModelScore:
        by_matrix = {matrix: list(own) for matrix, own in groupby(rows, lambda row: row.matrix)}
        formats = sorted({row.estimate.candidate.format for row in rows})
        ratios, are_best, total = [], [], 0
        for matrix, records in self.measured.items():
            known = [record for record in records if _value(record, quantity) is not None]
            total += len(known)
            chosen = _choice(by_matrix.get(matrix, ()), known, quantity)
            if chosen is not None:
                best = min(known, key=lambda record: _known(record, quantity))
                ratios.append(_known(chosen, quantity) / _known(best, quantity))
                are_best.append(ratios[-1] <= 1 + (best.noise or 0.0 if quantity == "time" else 0.0))
        large, very_large = (
            [cost for cost, nnz in self._products(model) if nnz >= least]
            for least in (LARGE_NNZ, VERY_LARGE_NNZ)
        )
        return ModelScore(
            **dataclasses.asdict(errors_of(rows)),
            quantity=quantity,
            regret=scores.regret(ratios),
            worst_ratio=float(max(ratios)),
            top1=float(np.mean(are_best)),
            unforecast=total - len(rows),
            forecast_products=scores.quantile(scores.floats(cost for cost, _ in self._products(model)), 0.5),
            forecast_products_large=max(large, default=None),
            forecast_products_very_large=max(very_large, default=None),
            formats={
                name: errors_of([row for row in rows if row.estimate.candidate.format == name])
                for name in formats
            },
            worst=worst_of(rows, _WORST),
        )

    def _products(self, model: str) -> list[tuple[float, int]]:
        """Return for each matrix what its forecasts cost in products of plain CSR, and its entries."""
        found = []
        for matrix, records in self.measured.items():
            plain = [record for record in records if record.candidate.format == "csr"]
            if plain and (matrix, model) in self.costs_s:
                fastest = min(record.time_s for record in plain)
                found.append((self.costs_s[matrix, model] / fastest, plain[0].nnz))
        return found

    def _repeats(self) -> Repeats | None:
        both = [(name, each, self._later(name, each)) for name, own in self.measured.items() for each in own]
        pairs = [(name, first, later) for name, first, later in both if later is not None]
        if not pairs:
            return None
        differences = [abs(later.time_s / first.time_s - 1) for _, first, later in pairs]
        waited = [_seconds_between(first, later) for _, first, later in pairs]
        return Repeats(
            matrices=len({name for name, _, _ in pairs}),
            candidates=len(pairs),
            median=float(np.median(differences)),
            p90=float(np.quantile(differences, 0.9)),
            after_s=float(np.median(waited)),
        )


def errors_of(rows: Sequence[EvaluationRow]) -> ErrorScore:
    """Return the score of some forecasts, at least one."""
    measured = np.array([row.measured for row in rows])
    values, low, high = (
        scores.floats(getattr(row.estimate, name) for row in rows) for name in ("value", "low", "high")
    )
    errors = scores.error_quantiles(scores.relative_errors(values, measured))
    repeats = scores.floats(row.repeat_difference for row in rows)
    return ErrorScore(
        forecasts=len(rows),
        mean_error=errors.mean,
        median_error=errors.median,
        p90_error=errors.p90,
        bias=errors.bias,
        coverage=scores.coverage(low, high, measured),
        mean_width=scores.mean((high - low) / values),
        median_noise=scores.quantile(scores.floats(row.record.noise for row in rows), 0.5),
        repeat_median=scores.quantile(repeats, 0.5),
        repeat_p90=scores.quantile(repeats, 0.9),
    )


def _choice(forecast: Sequence[EvaluationRow], known: Sequence[Record], quantity: str) -> Record | None:
    """Return what a model chooses of a matrix: plain CSR without forecasts, None where that is not there."""
    if forecast:
        return min(forecast, key=lambda row: row.estimate.value).record
    plain = [record for record in known if record.candidate.format == "csr"]
    return min(plain, key=lambda record: _known(record, quantity), default=None)


def _rank(score: ModelScore, rows: Sequence[EvaluationRow]) -> tuple[bool, float, float]:
    errors = [abs(row.error) for row in rows] + [np.inf] * score.unforecast
    return score.quantity != "time", float(np.quantile(errors, 0.5, method="higher")), score.median_error


def worst_of(rows: Iterable[EvaluationRow], count: int) -> tuple[tuple[str, float], ...]:
    """Return the matrices with the largest errors, and of each the median of the signed ones."""
    errors: dict[str, list[float]] = {}
    for row in rows:
        errors.setdefault(row.matrix, []).append(row.error)
    medians = {matrix: float(np.median(own)) for matrix, own in errors.items()}
    return tuple(sorted(medians.items(), key=lambda item: -abs(item[1]))[:count])


def _value(record: Record, quantity: str) -> float | None:
    value = getattr(record, QUANTITIES[quantity])
    return None if value is None else float(value)


def _known(record: Record, quantity: str) -> float:
    return float(getattr(record, QUANTITIES[quantity]))


def _seconds_between(before: Record, later: Record) -> float:
    first, second = (datetime.fromisoformat(record.measured_at) for record in (before, later))
    return (second - first).total_seconds()
