"""The five-minute benchmark of Gahvari et al. (2007) on this machine, and twins of real matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter

from sparsecast.api.calibrating import calibration, thread_counts
from sparsecast.benchmark.run import Progress, no_progress
from sparsecast.devices import DEVICES
from sparsecast.devices.naming import parse_device
from sparsecast.errors import InputError
from sparsecast.machines import storage
from sparsecast.machines.machine import Machine
from sparsecast.machines.profile import Profile
from sparsecast.papers.gahvari_2007.real_matrices import RealMatrices, real_matrices
from sparsecast.papers.gahvari_2007.search_space import all_series
from sparsecast.papers.gahvari_2007.suites.gahvari import Gahvari
from sparsecast.papers.gahvari_2007.summary import BenchResult, Rating, notes, ratings
from sparsecast.papers.gahvari_2007.twin_comparison import Twins, twins_of


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


def twins(
    paths: Sequence[str | Path],
    *,
    threads: int | None = None,
    dtype: str | None = None,
    device: str = "cpu",
    on_matrix: Callable[[], None] = lambda: None,
) -> Twins:
    """Measure matrices and their synthetic twins in turn, on the processor.

    Parameters
    ----------
    paths : sequence of path-like
        Matrix files; those that cannot be read are left out, with the reason.
    threads, dtype, device
        As in `calibrate`; by default each matrix' own type, on a device that computes on the host.
    on_matrix : callable
        Called after each matrix.

    Raises
    ------
    InputError
        If the threads, dtype or device cannot be.
    """
    computing = DEVICES.get(parse_device(device)[0])
    if not computing.shares_host:
        raise InputError(f"device '{device}' with twins: expected cpu, where they are compared; name that")
    machine = computing.describe()
    return twins_of(paths, thread_counts(machine, threads), machine, dtype, on_matrix)


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
    """Measure real matrices as the figures of this machine were, and compare both.

    What was measured before is taken over. After the budget no further height of blocks is measured.

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
