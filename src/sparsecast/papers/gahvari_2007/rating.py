"""The five-minute benchmark of Gahvari et al. (2007) on this machine."""

from __future__ import annotations

from collections.abc import Sequence

from sparsecast.api.calibrating import calibration
from sparsecast.benchmark.run import Progress, no_progress
from sparsecast.errors import InputError
from sparsecast.machines.profile import Profile
from sparsecast.papers.gahvari_2007.search_space import all_series
from sparsecast.papers.gahvari_2007.suites.gahvari import Gahvari
from sparsecast.papers.gahvari_2007.summary import BenchResult, Rating, notes, ratings


def bench(
    budget_s: float = 300.0,
    *,
    threads: int | None = None,
    dtype: str | None = None,
    device: str = "cpu",
    blocks: Sequence[str] | None = None,
    on_progress: Progress = no_progress,
) -> BenchResult:
    """Rate this machine by the five-minute benchmark of Gahvari et al. (2007), and keep its profile.

    It is a calibration in which the benchmark's matrices come first; those that forecasts need follow.

    Parameters
    ----------
    budget_s : float
        At least 60.
    threads, dtype, device, on_progress
        As in `calibrate`, also in what is raised.
    blocks : sequence of str, optional
        Block sizes such as ``"4x2"``; by default all 36.
    """
    suite = Gahvari(all_series(blocks))
    run = calibration(budget_s, threads=threads, dtype=dtype, device=device, rating=suite)
    run.on_progress = on_progress
    run.run()
    rated = suite.ratings(run)
    return BenchResult(
        machine=run.machine,
        budget_s=run.budget_s,
        used_s=run.used_s,
        ratings=tuple(rated),
        phases=run.phases,
        notes=(*run.notes, *notes(rated)),
        interrupted=run.interrupted,
    )


def rated(profile: Profile, dtype: str | None = None, threads: int | None = None) -> Rating:
    """Return the figures of a type of values and a number of threads, by default the first of a profile."""
    for rating in ratings(profile.records, profile.machine, profile.bandwidths):
        if dtype in (None, rating.dtype) and threads in (None, rating.threads):
            return rating
    wanted = ", ".join([dtype or "any type", f"{threads} threads" if threads else "any threads"])
    raise InputError(f"no figures of {profile.name} with {wanted}: expected some; sparsecast bench first")
