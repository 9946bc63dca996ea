"""The five-minute benchmark of Gahvari et al. (2007) on this machine, and real matrices next to it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from sparsecast.api.calibrating import calibration
from sparsecast.benchmark.run import Progress, no_progress
from sparsecast.errors import InputError
from sparsecast.machines import storage
from sparsecast.machines.machine import Machine
from sparsecast.machines.profile import Profile
from sparsecast.papers.gahvari_2007.real_matrices import RealMatrices, real_matrices
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
    """Return the figures of a type of values and a number of threads, by default the first of a profile.

    Raises
    ------
    InputError
        If it has none.
    """
    for rating in ratings(profile.records, profile.machine, profile.bandwidths):
        if dtype in (None, rating.dtype) and threads in (None, rating.threads):
            return rating
    wanted = ", ".join([dtype or "any type", f"{threads} threads" if threads else "any threads"])
    raise InputError(f"no figures of {profile.name} with {wanted}: expected some; sparsecast bench first")


def real_journal(machine: Machine) -> Path:
    """Return the file of what `real` measured on a machine."""
    return storage.home() / "measurements" / f"{machine.name}.gahvari.jsonl"


def real(
    paths: Sequence[str | Path],
    rating: Rating,
    budget_s: float = 300.0,
    on_progress: Progress = no_progress,
) -> RealMatrices:
    """Measure real matrices and their twins as the figures of this machine were, and compare all.

    What was measured before is taken over. After the budget no further height of blocks and no twin is
    measured.

    Parameters
    ----------
    paths : sequence of path-like
        Matrix files.
    rating : Rating
        Of this machine.
    budget_s : float
    on_progress : callable
        As in `calibrate`.

    Raises
    ------
    InputError
        If the budget cannot be.
    """
    if not 0 < budget_s < float("inf"):
        raise InputError(f"budget {budget_s:g}: expected seconds above 0; name some")
    start = perf_counter()
    return real_matrices(
        paths,
        rating,
        real_journal(rating.machine),
        lambda: perf_counter() - start > budget_s,
        lambda name: on_progress(perf_counter() - start, budget_s, name),
    )
