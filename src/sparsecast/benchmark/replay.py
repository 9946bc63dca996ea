"""Scoring models on stored Records, without any hardware: cross-validation in groups of matrices.

Models of products on many ranks are scored on kept records in the same way, without MPI.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial

import numpy as np

from sparsecast.benchmark import evaluation
from sparsecast.benchmark.evaluation import Scoring, distinct_names
from sparsecast.errors import InputError, ProfileError, SparsecastError
from sparsecast.matrices.problem import TRANSPOSE_PREFIX, group_of
from sparsecast.models.clusters import CLUSTER_MODELS
from sparsecast.models.clusters.cluster_model import ClusterModel, ClusterTraining, Question
from sparsecast.models.model import SCORED_SUITES, Model
from sparsecast.models.training import TrainingSet
from sparsecast.records import PUBLISHED_SUITE, DistributedRecord, Record
from sparsecast.results.cluster import GOOD, ClusterEvaluation, ClusterRow, ClusterScore
from sparsecast.results.evaluation import Evaluation
from sparsecast.system.tabular import grouped

#: Parts into which the groups of matrices are split; each is forecast by a model that has not seen it.
FOLDS = 5


def held_out(groups: Sequence[str]) -> list[Collection[str]]:
    """Return the parts into which groups of matrices are split, whole groups each."""
    return [set(groups[first::FOLDS]) for first in range(min(FOLDS, len(groups)))]


def refuse_too_few(groups: Collection[str], machine: str, remedy: str) -> None:
    """Raise a ProfileError unless there are two groups of matrices, one to learn from and one to forecast."""
    if len(groups) < 2:
        raise ProfileError(
            f"{machine} has {len(groups)} groups of matrices to score models on: expected at least 2; "
            f"{remedy}"
        )


def replay(
    training: TrainingSet,
    models: Sequence[Callable[[], Model]],
    on_fold: Callable[[], None] = lambda: None,
    again: Sequence[Record] = (),
    vectors: int = 1,
    transpose: bool = False,
) -> Evaluation:
    """Score models on the Records of a training set whose matrices they have not seen.

    The training set is of one device, dtype and number of threads. Each of `models` makes a model that is not
    fitted; one that refuses the Records is left out with its reason. The matrices of SCORED_SUITES, or those
    of published results, are split into FOLDS parts, whole groups each; `on_fold` is called after each fit.
    `again` is what was measured once more of the same matrices: it tells the noise, and is not learned from.
    Models learn from all Records, and are scored on those of as many `vectors`, and of transposes or of all
    other matrices.

    A ProfileError says that fewer than two groups of matrices were measured.
    """
    scored = _scored(training, vectors).where(lambda r: r.matrix.startswith(TRANSPOSE_PREFIX) == transpose)
    groups = {scored.group(record) for record in scored.records}
    refuse_too_few(
        groups,
        f"the profile of {training.machine.name}",
        "calibrate with a larger budget, or evaluate some matrices",
    )
    names = distinct_names({r.matrix: training.matrices[r.matrix].name for r in scored.records})
    scoring = Scoring(training.machine)
    score(scoring, training, models, names, on_fold=on_fold, again=again, vectors=vectors)
    return scoring.evaluation(training.machine.name)


def score(
    scoring: Scoring,
    training: TrainingSet,
    models: Sequence[Callable[[], Model]],
    names: Mapping[str, str],
    *,
    on_fold: Callable[[], None] = lambda: None,
    again: Sequence[Record] = (),
    vectors: int = 1,
) -> None:
    """Add to a scoring what models forecast of matrices that they have not seen, and what was measured.

    Models may learn from all of `training`; `names` has, by specification, the names of the matrices that are
    scored. The others are as in `replay`.
    """
    scored = _scored(training, vectors).where(lambda record: record.matrix in names)
    groups = list(dict.fromkeys(scored.group(record) for record in scored.records))
    for record in scored.records:
        scoring.add_records(names[record.matrix], [record])
    for record in again:
        if record.matrix in names:
            scoring.add_again(names[record.matrix], [record])
    if not groups:
        return
    for make in models:
        try:
            groups_of = (*make().groups, *make().optional_groups)
            # Once for all parts: features that are new are computed from each matrix anew.
            known, asked = make().used(training).completed(groups_of), scored.having(make().groups)
            for part in held_out(groups):
                _score_part(known, asked, make(), part, names, scoring)
                on_fold()
        except SparsecastError as error:
            scoring.refused[make().title] = str(error)


def _scored(training: TrainingSet, vectors: int) -> TrainingSet:
    """Return the Records of matrices as users have them, with warm caches and so many vectors."""
    suites = *SCORED_SUITES, PUBLISHED_SUITE
    warm = training.where(lambda record: record.suite in suites and record.regime == "warm")
    return warm.where(lambda record: record.candidate.vectors == vectors)


def _score_part(
    training: TrainingSet,
    scored: TrainingSet,
    model: Model,
    part: Collection[str],
    names: Mapping[str, str],
    scoring: Scoring,
) -> None:
    """Fit a model to what does not belong to the groups of `part`, and add its forecasts of what does."""
    model.fit(training.where(lambda record: training.group(record) not in part))
    known = scored.of_groups(part).having(model.groups)
    for matrix, records in grouped(known.records, lambda record: record.matrix).items():
        candidates = list(dict.fromkeys(record.candidate for record in records))
        found = model.estimates(known.structure(records[0]), candidates)
        scoring.add_estimates(names[matrix], model.title, model.quantity, found)


QuestionOf = Callable[[DistributedRecord], Question]


def replay_clusters(
    training: ClusterTraining, question_of: QuestionOf, on_fold: Callable[[], None] = lambda: None
) -> ClusterEvaluation:
    """Score every model of products on many ranks on records whose matrices it has not seen.

    Those of `training` on more ranks than cores are not scored. `question_of` returns what is known of the
    matrix of a record, `on_fold` is called after each fit: at most FOLDS times for each model.
    """
    # The last record of each matrix and Configuration, and how many had ranks without a core.
    latest = {(record.matrix, record.configuration): record for record in training.records}
    records = [record for record in latest.values() if not record.is_oversubscribed]
    oversubscribed = len(latest) - len(records)
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
        evaluation.floats(getattr(row.forecast, name) for row in rows)
        for name in ("time_s", "low_s", "high_s")
    )
    measured, noises = (
        evaluation.floats(getattr(row.record, name) for row in rows) for name in ("time_s", "noise")
    )
    errors = evaluation.error_score((time_s, low, high), measured, noises, evaluation.floats(()))
    forecasts = {(row.record.matrix, row.record.configuration): row.forecast.time_s for row in rows}
    ratios = evaluation.choice_ratios(
        [(record.matrix, record.configuration.ranks) for record in records],
        evaluation.floats(forecasts.get((record.matrix, record.configuration)) for record in records),
        np.array([record.time_s for record in records]),
    )
    return ClusterScore(
        **asdict(errors),
        unforecast=len(records) - len(rows),
        choices=len(ratios),
        found=evaluation.mean((ratios == 1.0).astype(float)),
        good=evaluation.mean((ratios <= 1 + GOOD).astype(float)),
        regret=evaluation.regret(ratios) if len(ratios) else None,
    )
