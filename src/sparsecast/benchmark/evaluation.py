"""How good the forecasts were: each forecast with its measurement, and each model's score.

Errors and ratios are functions of arrays of forecasts and measurements. Missing values are NaN in arrays, and
None as results.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from sparsecast.machines.machine import Machine
from sparsecast.models.work import capacity
from sparsecast.records import Candidate, Estimate, Record
from sparsecast.results.columns import storage_of
from sparsecast.results.evaluation import (
    ErrorScore,
    Evaluation,
    EvaluationRow,
    ModelScore,
    Repeats,
    value_of,
)
from sparsecast.system.tabular import grouped

Floats = NDArray[np.float64]


def floats(values: Iterable[float | None]) -> Floats:
    """Return an array, with NaN for None."""
    return np.array([np.nan if value is None else value for value in values], dtype=float)


def error_score(
    forecasts: tuple[Floats, Floats, Floats], measured: Floats, noises: Floats, repeats: Floats
) -> ErrorScore:
    """Return the score of forecasts, at least one: their values with the ends of their intervals.

    `repeats` are the relative differences of what was measured once more.
    """
    values, low, high = forecasts
    errors = np.asarray(np.divide(values, measured) - 1, dtype=float)
    has_ends = ~(np.isnan(low) | np.isnan(high))
    return ErrorScore(
        forecasts=len(errors),
        mean_error=float(np.abs(errors).mean()),
        median_error=float(np.median(np.abs(errors))),
        p90_error=float(np.quantile(np.abs(errors), 0.9)),
        bias=float(errors.mean()),
        coverage=mean(((low <= measured) & (measured <= high))[has_ends].astype(float)),
        mean_width=mean((high - low) / values),
        median_noise=quantile(noises, 0.5),
        repeat_median=quantile(repeats, 0.5),
        repeat_p90=quantile(repeats, 0.9),
    )


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


#: Matrices that a score names as those with the largest errors.
_WORST = 3

#: From so many entries on a matrix is large, and from so many very large: what its forecasts cost is told.
LARGE_NNZ, VERY_LARGE_NNZ = 1_000_000, 10_000_000


def distinct_names(names: Mapping[str, str]) -> dict[str, str]:
    """Return by specification the name of each matrix, or its specification where another has that name."""
    given = Counter(names.values())
    return {key: name if given[name] == 1 else key for key, name in names.items()}


@dataclass
class Scoring:
    """Collects forecasts, and all that was measured, by the name of the matrix, and scores the models.

    `again` is what was measured once more, `costs_s` by matrix and model the seconds that its forecasts took.
    The caches of the `machine` are the sizes that scores are told by.
    """

    machine: Machine
    rows: dict[str, list[EvaluationRow]] = field(default_factory=dict)
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
        self.rows.setdefault(matrix, []).extend(
            EvaluationRow(matrix, model, quantity, estimate, known[estimate.candidate])
            for estimate in estimates
            if estimate.candidate in known and value_of(known[estimate.candidate], quantity) is not None
        )

    def of(self, matrix: str) -> Scoring:
        """Return what there is of one matrix alone."""
        records = {name: self.measured[name] for name in [matrix] if name in self.measured}
        return dataclasses.replace(self, measured=records)

    def evaluation(self, profile: str, interrupted: bool = False) -> Evaluation:
        """Return the rows, matrix by matrix and fastest first, and the scores, best first."""
        rows = [
            dataclasses.replace(row, again=self._later(matrix, row.record))
            for matrix in self.measured
            for row in sorted(self.rows.get(matrix, ()), key=lambda row: row.record.time_s)
        ]
        scored = {}
        ranks = {}
        for model, own in grouped(rows, lambda row: row.model).items():
            scored[model] = score = self._score(own, model, own[0].quantity)
            errors = [abs(row.error) for row in own] + [np.inf] * score.unforecast
            median = float(np.quantile(errors, 0.5, method="higher"))
            ranks[model] = score.quantity != "time", median, score.median_error
        return Evaluation(
            profile,
            tuple(rows),
            {model: scored[model] for model in sorted(scored, key=ranks.__getitem__)},
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
        by_matrix = grouped(rows, lambda row: row.matrix)
        by_storage = grouped(rows, lambda row: storage_of(row.estimate.candidate))
        by_traffic = sorted(rows, key=lambda row: row.record.traffic_bytes)
        by_size = grouped(by_traffic, lambda row: size_of(self.machine, row.record))
        ratios, are_best, total = [], [], 0
        costs = []  # of the forecasts of a matrix, in products of plain CSR, and its entries
        for matrix, records in self.measured.items():
            known = [(value, r) for r in records if (value := value_of(r, quantity)) is not None]
            total += len(known)
            plain = [record for record in records if record.candidate.format == "csr"]
            if plain and (matrix, model) in self.costs_s:
                fastest_s = min(record.time_s for record in plain)
                costs.append((self.costs_s[matrix, model] / fastest_s, plain[0].nnz))
            # What a model's choice took: plain CSR without forecasts, None where that is not there.
            csr = (value for value, record in known if record.candidate.format == "csr")
            chosen: float | None = min(csr, default=None)
            if forecast := by_matrix.get(matrix):
                chosen = min(forecast, key=lambda row: row.estimate.value).measured
            if chosen is not None:
                least, best = min(known, key=itemgetter(0))
                ratios.append(chosen / least)
                are_best.append(ratios[-1] <= 1 + (best.noise or 0.0 if quantity == "time" else 0.0))
        large, very_large = (
            max((cost for cost, nnz in costs if nnz >= entries), default=None)
            for entries in (LARGE_NNZ, VERY_LARGE_NNZ)
        )
        return ModelScore(
            **dataclasses.asdict(errors_of(rows)),
            quantity=quantity,
            regret=regret(ratios),
            worst_ratio=float(max(ratios)),
            top1=float(np.mean(are_best)),
            unforecast=total - len(rows),
            forecast_products=quantile(floats(cost for cost, _ in costs), 0.5),
            forecast_products_large=large,
            forecast_products_very_large=very_large,
            formats={name: errors_of(own) for name, own in sorted(by_storage.items())},
            sizes={name: errors_of(own) for name, own in by_size.items()},
            worst=worst_of(rows, _WORST),
        )

    def _repeats(self) -> Repeats | None:
        both = [(name, each, self._later(name, each)) for name, own in self.measured.items() for each in own]
        pairs = [(name, first, later) for name, first, later in both if later is not None]
        if not pairs:
            return None
        differences = [abs(later.time_s / first.time_s - 1) for _, first, later in pairs]
        waited = [
            datetime.fromisoformat(later.measured_at) - datetime.fromisoformat(first.measured_at)
            for _, first, later in pairs
        ]
        return Repeats(
            matrices=len({name for name, _, _ in pairs}),
            candidates=len(pairs),
            median=float(np.median(differences)),
            p90=float(np.quantile(differences, 0.9)),
            after_s=float(np.median([each.total_seconds() for each in waited])),
        )


def size_of(machine: Machine, record: Record) -> str:
    """Return which cache of all threads holds the bytes that a product of a Record moves, as "within L2".

    What none holds is "beyond L3", where that is the last, or "twice beyond L3": more than two of them hold.
    """
    caches = [cache for cache in machine.product_caches if cache.level > 1]
    held_bytes = [capacity(cache, record.candidate.threads) for cache in caches]
    for cache, held in zip(caches, held_bytes, strict=True):
        if record.traffic_bytes <= held:
            return f"within L{cache.level}"
    if not caches:
        return "any"
    beyond = f"beyond L{caches[-1].level}"
    return f"twice {beyond}" if record.traffic_bytes > 2 * held_bytes[-1] else beyond


def errors_of(rows: Sequence[EvaluationRow]) -> ErrorScore:
    """Return the score of some forecasts, at least one."""
    value, low, high = (
        floats(getattr(row.estimate, name) for row in rows) for name in ("value", "low", "high")
    )
    return error_score(
        (value, low, high),
        floats(row.measured for row in rows),
        floats(row.record.noise for row in rows),
        floats(row.repeat_difference for row in rows),
    )


def worst_of(rows: Iterable[EvaluationRow], count: int) -> tuple[tuple[str, float], ...]:
    """Return the matrices with the largest errors, and of each the median of the signed ones."""
    medians = {
        matrix: float(np.median([row.error for row in of_matrix]))
        for matrix, of_matrix in grouped(rows, lambda row: row.matrix).items()
    }
    return tuple(sorted(medians.items(), key=lambda item: -abs(item[1]))[:count])
