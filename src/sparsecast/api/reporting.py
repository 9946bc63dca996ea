"""What a report about one matrix tells: gathered here, drawn in `reports`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sparsecast.api.forecasting import plan as plan_of
from sparsecast.api.forecasting import predict
from sparsecast.api.matrices import structure
from sparsecast.api.targets import age_days
from sparsecast.benchmark.journal import AGAIN_SUITE, kept
from sparsecast.devices import DEVICES
from sparsecast.devices.target import Target
from sparsecast.errors import MatrixSizeError, ProfileError
from sparsecast.machines.profile import Profile
from sparsecast.matrices.problem import Problem
from sparsecast.planning.drift import drift_since, one_reading
from sparsecast.records import Bandwidth, Record
from sparsecast.results.reports import MatrixReport, Trust


def matrix_report(
    problem: Problem,
    profile: Profile,
    *,
    iterations: int = 1000,
    threads: int | None = None,
    dtype: str | None = None,
    model: str | None = None,
) -> MatrixReport:
    """Gather what a report about a matrix shows; nothing is measured for it.

    Parameters
    ----------
    problem : Problem
    profile : Profile
    iterations : int
        Products that the plan is for.
    threads, dtype, model
        As in `predict`, also in what is raised.
    """
    with one_reading():
        return _report(problem, profile, iterations, {"threads": threads, "dtype": dtype, "model": model})


def _report(problem: Problem, profile: Profile, iterations: int, asked: dict[str, Any]) -> MatrixReport:
    prediction = predict(problem, profile, **asked)
    target = Target.of(problem, profile.machine, asked["threads"], asked["dtype"])
    made, unplanned = None, ""
    try:
        made = plan_of(problem, profile, iterations=iterations, **asked)
    except (MatrixSizeError, ProfileError) as error:
        unplanned = str(error)
    source = prediction.transferred_from
    learned = replace(target, dtype=source.dtype, threads=source.threads) if source else target
    return MatrixReport(
        problem,
        profile,
        target,
        structure(problem),
        prediction,
        made,
        unplanned,
        _measured(problem, profile, target),
        _roofs(profile, target),
        _trust(profile, learned),
    )


def _measured(problem: Problem, profile: Profile, target: Target) -> dict[str, Record]:
    """Return the newest Record of each format of a matrix, of current kernels only."""
    if profile.machine.published_as is not None:
        return {}
    known = [*kept(profile.machine).records, *profile.records]
    found: dict[str, Record] = {}
    for record in sorted(known, key=lambda each: each.measured_at):
        candidate = record.candidate
        setting = candidate.device, candidate.dtype, candidate.threads
        if (
            record.matrix == problem.specification
            and record.suite != AGAIN_SUITE
            and setting == (target.device, target.dtype, target.threads)
            and DEVICES.get(target.device).is_current(record)
        ):
            found[candidate.format] = record
    return found


def _roofs(profile: Profile, target: Target) -> tuple[Bandwidth, ...]:
    own = [b for b in profile.bandwidths if b.kind == "read" and b.device == target.device]
    with_threads = [b for b in own if b.threads == target.threads]
    return tuple(sorted(with_threads, key=lambda each: each.bytes))


def _trust(profile: Profile, learned: Target) -> Trust:
    """Return how far a profile can be trusted for what was learned of one setting."""
    records = profile.select(device=learned.device, dtype=learned.dtype, threads=learned.threads)
    noises = [record.noise for record in records if record.noise is not None]
    drift = drift_since(profile, learned, records)
    return Trust(
        len(records),
        len({record.matrix for record in records}),
        float(np.median(noises)) if noises else None,
        age_days(records),
        (drift.sentence() or "none beyond the noise") if drift.scales else "not known here",
    )
