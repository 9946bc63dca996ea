"""Scoring models of products on many ranks on kept records: cross-validation in groups, without MPI."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial

import numpy as np

from sparsecast.benchmark import scores
from sparsecast.benchmark.replay import held_out, refuse_too_few
from sparsecast.errors import InputError
from sparsecast.matrices.problem import group_of
from sparsecast.models.clusters import CLUSTER_MODELS
from sparsecast.models.clusters.cluster_model import ClusterModel, ClusterTraining, Question
from sparsecast.records import DistributedRecord
from sparsecast.results.cluster import GOOD, ClusterEvaluation, ClusterRow, ClusterScore

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
    """
    records, oversubscribed = _latest(training.records)
    groups = list(dict.fromkeys(group_of(record.matrix) for record in records))
    refuse_too_few(
        groups,
        f"the journal of products on many ranks of {training.machine.name}",
        "measure some by mpirun -n N sparsecast measure MATRIX",
    )
    known = replace(training, records=tuple(records))
    rows: dict[str, list[ClusterRow]] = {}
    refused: dict[str, str] = {}
    kinds = map(CLUSTER_MODELS.get, CLUSTER_MODELS.names())
    for make in [partial(kind, **settings) for kind in kinds for settings in kind.compared]:
        name = make().title
        try:
            for part in held_out(groups):
                rows.setdefault(name, []).extend(_rows_of_part(make, known, part, question_of, refused))
                on_fold()
        except InputError as error:
            refused[name] = str(error)
            rows.pop(name, None)
    scored = {name: _score(own, records) for name, own in rows.items() if own}
    ranked = dict(sorted(scored.items(), key=lambda item: (item[1].unforecast, item[1].median_error)))
    every_row = tuple(row for own in rows.values() for row in own)
    return ClusterEvaluation(training.machine.name, every_row, ranked, refused, oversubscribed)


def _latest(records: Iterable[DistributedRecord]) -> tuple[list[DistributedRecord], int]:
    """Return the last record of each matrix and Configuration, and how many had ranks without a core."""
    latest = {(record.matrix, record.configuration): record for record in records}
    on_cores = [record for record in latest.values() if not record.is_oversubscribed]
    return on_cores, len(latest) - len(on_cores)


def _rows_of_part(
    make: Callable[[], ClusterModel],
    training: ClusterTraining,
    part: Collection[str],
    question_of: QuestionOf,
    refused: dict[str, str],
) -> Iterator[ClusterRow]:
    """Fit a model to what does not belong to the groups of a part, and forecast what does."""
    unseen = tuple(record for record in training.records if group_of(record.matrix) not in part)
    model, name = make().fit(replace(training, records=unseen)), make().title
    for record in training.records:
        if group_of(record.matrix) not in part:
            continue
        configuration, question = record.configuration, question_of(record)
        lacking = model.lacking(configuration, question)
        if lacking is not None:
            way = f"{configuration.algorithm} in {configuration.format} on {configuration.ranks} ranks"
            refused.setdefault(f"{name}: {way}", lacking)
        for forecast in model.forecast([configuration], question):
            yield ClusterRow(name, record, forecast)


def _score(rows: Sequence[ClusterRow], records: Sequence[DistributedRecord]) -> ClusterScore:
    time_s, low, high = (
        scores.floats(getattr(row.forecast, name) for row in rows) for name in ("time_s", "low_s", "high_s")
    )
    measured, noises = (
        scores.floats(getattr(row.record, name) for row in rows) for name in ("time_s", "noise")
    )
    errors = scores.error_score((time_s, low, high), measured, noises, scores.floats(()))
    forecasts = {(row.record.matrix, row.record.configuration): row.forecast.time_s for row in rows}
    ratios = scores.choice_ratios(
        [(record.matrix, record.configuration.ranks) for record in records],
        scores.floats(forecasts.get((record.matrix, record.configuration)) for record in records),
        np.array([record.time_s for record in records]),
    )
    return ClusterScore(
        **asdict(errors),
        unforecast=len(records) - len(rows),
        choices=len(ratios),
        found=scores.mean((ratios == 1.0).astype(float)),
        good=scores.mean((ratios <= 1 + GOOD).astype(float)),
        regret=scores.regret(ratios) if len(ratios) else None,
    )
