"""Scoring models on stored Records, without any hardware: cross-validation in groups of matrices."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from sparsecast.benchmark.evaluation import Scoring, distinct_names
from sparsecast.errors import ProfileError, SparsecastError
from sparsecast.matrices.problem import TRANSPOSE_PREFIX
from sparsecast.models.model import SCORED_SUITES, Model
from sparsecast.models.training import TrainingSet
from sparsecast.records import PUBLISHED_SUITE, Record
from sparsecast.results.evaluation import Evaluation
from sparsecast.system.grouping import grouped

#: Parts into which the groups of matrices are split; each is forecast by a model that has not seen it.
FOLDS = 5


def held_out(groups: Sequence[str], folds: int = FOLDS) -> Iterator[Collection[str]]:
    """Give the parts into which groups of matrices are split, whole groups each."""
    yield from (set(groups[first::folds]) for first in range(min(folds, len(groups))))


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
    folds: int = FOLDS,
    on_fold: Callable[[], None] = lambda: None,
    again: Sequence[Record] = (),
    vectors: int = 1,
    transpose: bool = False,
) -> Evaluation:
    """Score models on the Records of a training set whose matrices they have not seen.

    The training set is of one device, dtype and number of threads. Each of `models` makes a model that is not
    fitted; one that refuses the Records is left out with its reason. `folds` are parts of the matrices of
    SCORED_SUITES, or of those of published results, whole groups each; `on_fold` is called after each fit.
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
    score(scoring, training, models, names, folds=folds, on_fold=on_fold, again=again, vectors=vectors)
    return scoring.evaluation(training.machine.name)


def score(
    scoring: Scoring,
    training: TrainingSet,
    models: Sequence[Callable[[], Model]],
    names: Mapping[str, str],
    *,
    folds: int = FOLDS,
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
            for part in held_out(groups, folds):
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
