"""What reports tell of one matrix or a collection, and of the models there: drawn in `reports`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from sparsecast.api.evaluating import chosen_models
from sparsecast.api.matrices import left_out, structure
from sparsecast.api.next_steps import forecast_next_steps
from sparsecast.api.profiles import age_days, measured_again, training_for
from sparsecast.api.sessions import Session
from sparsecast.benchmark.evaluation import Scoring
from sparsecast.benchmark.journal import AGAIN_SUITE, kept
from sparsecast.benchmark.replay import score
from sparsecast.devices import DEVICES
from sparsecast.devices.target import Target
from sparsecast.errors import InputError, MatrixSizeError, ProfileError
from sparsecast.machines.profile import Profile
from sparsecast.matrices.problem import Problem
from sparsecast.models import MODELS, model_for
from sparsecast.records import Record, reads_of
from sparsecast.results.reports import CollectionReport, MatrixReport, Rarity, Trust, rarities


def matrix_report(session: Session, problem: Problem, *, products: int = 1000) -> MatrixReport:
    """Gather what a report about a matrix shows; nothing is measured for it.

    The plan is for this number of `products`; errors are those of `Session.predict`.
    """
    session = session if session.trust.anyway else session.changed(anyway=True)
    prediction = session.predict(problem)
    profile, target = session.question(problem)
    made, unplanned = None, ""
    try:
        made = session.plan(problem, products=products, probe_s=0)
    except (MatrixSizeError, ProfileError) as error:
        unplanned = str(error)
    source = prediction.transferred_from
    learned = replace(target, dtype=source.dtype, threads=source.threads) if source else target
    records = profile.select(device=learned.device, dtype=learned.dtype, threads=learned.threads)
    noises = [record.noise for record in records if record.noise is not None]
    drift = session.drift(problem)
    trust = Trust(
        len(records),
        len({record.matrix for record in records}),
        float(np.median(noises)) if noises else None,
        age_days(records),
        (drift.sentence() or "none beyond the noise") if drift.scales else "not known here",
    )
    return MatrixReport(
        problem,
        profile,
        target,
        structure(problem),
        prediction,
        made,
        unplanned,
        _measured(problem, profile, target),
        tuple(reads_of(profile.bandwidths, target.device, target.threads)),
        trust,
        forecast_next_steps(problem, session, made) if made else (),
    )


def _measured(problem: Problem, profile: Profile, target: Target) -> dict[str, Record]:
    """Return the newest Record of each format of a matrix, of current kernels only."""
    if target.is_published:
        return {}
    known = [*kept(profile.machine).records, *profile.records]
    found: dict[str, Record] = {}
    for record in sorted(known, key=lambda each: each.measured_at):
        candidate = record.candidate
        setting = candidate.device, candidate.dtype, candidate.vectors
        if (
            record.matrix == problem.specification
            and record.suite != AGAIN_SUITE
            and setting == (target.device, target.dtype, target.vectors)
            and DEVICES.get(target.device).is_current(record)
            and target.asks_for(record)
        ):
            found[candidate.format] = record
    return found


def first_readable(problems: Mapping[str, Problem], refused: Mapping[str, str]) -> Problem:
    """Return the first problem of a collection whose matrix can be had: what a profile is asked for.

    An InputError has the reason of the first one, if there is none.
    """
    reasons = list(refused.values())
    for problem in problems.values():
        try:
            _ = problem.matrix
        except InputError as error:
            reasons.append(str(error))
        else:
            return problem
    raise InputError(reasons[0])


def matrix_reports(
    session: Session, problems: dict[str, Problem], refused: dict[str, str], *, products: int = 1000
) -> Iterator[tuple[str, MatrixReport]]:
    """Gather the report of each matrix of a collection in turn, as `matrix_report` does.

    Of a matrix that cannot be read or forecast, `refused` gets the reason. `problems` let go of their
    matrices.
    """
    session = session.changed(anyway=True)
    for name, problem in list(problems.items()):
        problems[name] = problem.released()
        with left_out(name, refused):
            yield name, matrix_report(session, problem, products=products)


def collection_report(
    matrices: Sequence[str],
    reports: Mapping[str, MatrixReport],
    profile: Profile,
    refused: Mapping[str, str],
    *,
    model: str | None = None,
    models: Sequence[str] | None = None,
    on_fold: Callable[[], None] = lambda: None,
) -> CollectionReport:
    """Score models on what was kept of a collection, as a replay does; nothing is measured for it.

    `matrices` are as they were asked for, `refused` has those without a report, and why. Beside the `model`
    of the reports, `models` are scored, all by default; `on_fold` is called after each fit. An
    UnknownNameError says that there is no such model.
    """
    shown = model_for("time", model)
    kinds = chosen_models(models)
    kinds = kinds if MODELS.get(shown) in kinds else [MODELS.get(shown), *kinds]
    makers = [partial(kind, **settings) for kind in kinds for settings in kind.compared]
    again = measured_again(profile.machine)
    scoring = Scoring(profile.machine)
    unusual: dict[str, tuple[Rarity, ...]] = {}
    # For each type of values and number of threads the names of its matrices, by specification.
    by_setting: dict[tuple[str, str, int], tuple[Target, dict[str, str]]] = {}
    for name, report in reports.items():
        target = report.target
        _, names = by_setting.setdefault((target.device, target.dtype, target.threads), (target, {}))
        names[report.problem.specification] = name
    for target, names in by_setting.values():
        try:
            training = training_for(profile, target)
        except ProfileError as error:  # forecast from another setting: nothing was learned of this one
            scoring.refused |= dict.fromkeys(names.values(), str(error))
            continue
        score(scoring, training, makers, names, on_fold=on_fold, again=again)
        for name in names.values():
            report = reports[name]
            if report.measured:
                # The matrices of other groups that a model learns from, each once.
                others = {r.matrix: r for r in training.records if training.group(r) != report.problem.group}
                unusual[name] = rarities(report.structure, list(map(training.structure, others.values())))
    evaluation = scoring.evaluation(profile.name)
    return CollectionReport(tuple(matrices), reports, shown, evaluation, unusual, refused)
