"""The five-minute benchmark of Gahvari et al. (2007) on this machine, and twins of real matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter

from sparsecast.api.calibrating import calibration, machine_of, thread_counts
from sparsecast.benchmark.run import Progress, no_progress
from sparsecast.devices import DEVICES
from sparsecast.devices.naming import parse_device
from sparsecast.errors import InputError
from sparsecast.machines import storage
from sparsecast.machines.profile import find_profile
from sparsecast.matrices.reading import matrix_files
from sparsecast.papers.gahvari_2007.real_matrices import RealMatrices, real_matrices
from sparsecast.papers.gahvari_2007.search_space import all_series
from sparsecast.papers.gahvari_2007.suites.gahvari import Gahvari
from sparsecast.papers.gahvari_2007.summary import BenchResult, notes, ratings
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


def real(
    folder: str | Path,
    budget_s: float = 300.0,
    *,
    threads: int | None = None,
    dtype: str | None = None,
    device: str = "cpu",
    on_progress: Progress = no_progress,
) -> RealMatrices:
    """Measure the real matrices of a folder and compare them with the figures that `bench` kept.

    What was measured before is taken over. After the budget no further height of blocks is measured.

    Parameters
    ----------
    folder : path-like
        With matrix files.
    budget_s : float
    threads, dtype, device, on_progress
        As in `calibrate`; by default the first that `bench` rated.

    Raises
    ------
    InputError
        If the folder has no matrices, the budget cannot be, or `bench` kept no figures of that kind.
    ProfileError
        If this machine has not been rated.
    """
    if not 0 < budget_s < float("inf"):
        raise InputError(f"budget {budget_s:g}: expected seconds above 0; name some")
    files, machine = matrix_files(folder), machine_of(device)
    profile = find_profile(None, machine)
    chosen = [
        rating
        for rating in ratings(profile.records, profile.machine, profile.bandwidths)
        if dtype in (None, rating.dtype) and threads in (None, rating.threads)
    ]
    if not chosen:
        wanted = ", ".join([dtype or "any type", f"{threads} threads" if threads else "any threads"])
        raise InputError(f"no figures of {machine.name} with {wanted}: expected some; sparsecast bench first")
    start = perf_counter()
    return real_matrices(
        files,
        chosen[0],
        storage.home() / "measurements" / f"{machine.name}.gahvari.jsonl",
        lambda: perf_counter() - start > budget_s,
        lambda name: on_progress(perf_counter() - start, budget_s, name),
    )
