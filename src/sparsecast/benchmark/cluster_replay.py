"""Scoring models of products on many ranks on kept records: cross-validation in groups, without MPI."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from sparsecast.benchmark.replay import FOLDS
from sparsecast.errors import InputError, ProfileError
from sparsecast.matrices.problem import group_of
from sparsecast.models.clusters import CLUSTER_MODELS
from sparsecast.models.clusters.cluster_model import ClusterModel, ClusterTraining, Question
from sparsecast.records import Configuration, DistributedRecord
from sparsecast.results.cluster import ClusterEvaluation, ClusterRow, ClusterScore

#: A choice counts as good where it takes at most this share longer than the fastest.
GOOD = 0.05

QuestionOf = Callable[[DistributedRecord], Question]


def replay_clusters(
    training: ClusterTraining, question_of: QuestionOf, on_fold: Callable[[], None] = lambda: None
) -> ClusterEvaluation:
    """Score every model of products on many ranks on records whose matrices it has not seen.

    Parameters
    ----------
    training : ClusterTraining
        With the kept records. Those on more ranks than cores are not scored.
    question_of : callable
        Returns what is known of the matrix of a record.
    on_fold : callable
        Called after each fit: at most FOLDS times for each model.

    Raises
    ------
    ProfileError
        If fewer than two groups of matrices were measured.
    """
    records, oversubscribed = _latest(training.records)
    groups = list(dict.fromkeys(group_of(record.matrix) for record in records))
    if len(groups) < 2:
        raise ProfileError(
            f"the journal of {training.machine.name} has distributed products of {len(groups)} groups of "
            f"matrices: expected at least 2; measure some by mpirun -n N sparsecast measure MATRIX"
        )
    known = replace(training, records=tuple(records))
    rows: list[ClusterRow] = []
    refused: dict[str, str] = {}
    for name in CLUSTER_MODELS.names():
        try:
            for part in (groups[first::FOLDS] for first in range(min(FOLDS, len(groups)))):
                rows += _rows_of_part(name, known, part, question_of, refused)
                on_fold()
        except InputError as error:
            refused[name] = str(error)
            rows = [row for row in rows if row.model != name]
    scores = {
        name: _score([row for row in rows if row.model == name], records)
        for name in dict.fromkeys(row.model for row in rows)
    }
    best_first = dict(sorted(scores.items(), key=lambda each: (each[1].unforecast, each[1].median_error)))
    return ClusterEvaluation(training.machine.name, tuple(rows), best_first, refused, oversubscribed)


def _latest(records: Iterable[DistributedRecord]) -> tuple[list[DistributedRecord], int]:
    """Return the last record of each matrix and Configuration, and how many had ranks without a core."""
    found = {(record.matrix, record.configuration): record for record in records}
    own = [record for record in found.values() if not record.is_oversubscribed]
    return own, len(found) - len(own)


def _rows_of_part(
    name: str,
    training: ClusterTraining,
    part: Sequence[str],
    question_of: QuestionOf,
    refused: dict[str, str],
) -> list[ClusterRow]:
    """Fit a model to what does not belong to the groups of a part, and forecast what does."""
    unseen = tuple(record for record in training.records if group_of(record.matrix) not in part)
    model = CLUSTER_MODELS.get(name)().fit(replace(training, records=unseen))
    rows = []
    for record in training.records:
        if group_of(record.matrix) in part:
            question = question_of(record)
            lacking = model.lacking(record.configuration, question)
            if lacking is None:
                rows += _rows(model, record, question)
            else:
                refused.setdefault(f"{name}: {_way(record.configuration)}", lacking)
    return rows


def _rows(model: ClusterModel, record: DistributedRecord, question: Question) -> list[ClusterRow]:
    return [
        ClusterRow(model.name, record, found) for found in model.forecast([record.configuration], question)
    ]


def _way(configuration: Configuration) -> str:
    return f"{configuration.algorithm} in {configuration.format} on {configuration.ranks} ranks"


def _score(rows: Sequence[ClusterRow], records: Sequence[DistributedRecord]) -> ClusterScore:
    errors = np.array([row.error for row in rows])
    covered = [row.is_covered for row in rows if row.is_covered is not None]
    ratios = _choice_ratios(rows, records)
    noises = [record.noise for record in records if record.noise is not None]
    return ClusterScore(
        forecasts=len(rows),
        unforecast=len(records) - len(rows),
        median_error=float(np.median(errors)),
        mean_error=float(errors.mean()),
        p90_error=float(np.quantile(errors, 0.9)),
        coverage=float(np.mean(covered)) if covered else None,
        choices=len(ratios),
        found=float(np.mean(ratios == 1.0)) if len(ratios) else None,
        good=float(np.mean(ratios <= 1 + GOOD)) if len(ratios) else None,
        regret=float(np.exp(np.log(ratios).mean())) - 1 if len(ratios) else None,
        median_noise=float(np.median(noises)) if noises else None,
    )


def _choice_ratios(
    rows: Sequence[ClusterRow], records: Sequence[DistributedRecord]
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return chosen over fastest time of each matrix and number of ranks with two ways or more."""
    measured: dict[tuple[str, int], list[float]] = {}
    for record in records:
        measured.setdefault((record.matrix, record.configuration.ranks), []).append(record.time_s)
    chosen: dict[tuple[str, int], ClusterRow] = {}
    for row in rows:
        key = row.record.matrix, row.record.configuration.ranks
        if key not in chosen or row.forecast.time_s < chosen[key].forecast.time_s:
            chosen[key] = row
    ratios = [row.record.time_s / min(measured[key]) for key, row in chosen.items() if len(measured[key]) > 1]
    return np.array(ratios)
