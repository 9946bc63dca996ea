"""Calibrations, the five-minute benchmark, profiles."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sparsecast.api.resolving import calibrated_profile, machine_of, model_records, target_of
from sparsecast.benchmark.gahvari import search_space, summary
from sparsecast.benchmark.gahvari.summary import BenchResult
from sparsecast.benchmark.run import Calibration, Progress, no_progress
from sparsecast.benchmark.twin_comparison import Twins, twins_of
from sparsecast.devices import DEVICES
from sparsecast.devices.naming import parse_device
from sparsecast.errors import InputError, ProfileError
from sparsecast.machines.machine import Machine, detect
from sparsecast.machines.profile import Profile, find_profile, known_profiles, missing_profiles
from sparsecast.planning.candidates import Target

#: Seconds of the calibration that a question starts by itself if the machine is not calibrated. Compiling, 20
#: to 35 seconds once, is not among them: a slow machine would be left without forecasts for some formats.
QUICK_BUDGET_S = 55.0


def profile(name: str | Path | None = None, *, device: str = "cpu") -> Profile:
    """Return the profile of this machine with `device`, or the one with this name or path.

    Raises
    ------
    ProfileError
        If this machine has not been calibrated, or the file is not usable.
    UnknownNameError
        If no profile has that name.
    DeviceError
        If a device of this machine is wanted and cannot be found.
    """
    return find_profile(name, None if name else machine_of(device))


def machines() -> tuple[Machine, dict[str, Profile | ProfileError]]:
    """Return this machine, and every profile at hand, or why it cannot be used, by name.

    Profiles that are wanted and not shipped yet are among those that cannot be used.
    """
    found: dict[str, Profile | ProfileError] = {}
    for name in (*known_profiles(), *missing_profiles()):
        try:
            found[name] = find_profile(name)
        except ProfileError as error:
            found[name] = error
    return detect(), found


def calibrate(
    budget_s: float = 300.0,
    *,
    threads: int | None = None,
    dtype: str | None = None,
    device: str = "cpu",
    suites: Sequence[str] = (),
    on_progress: Progress = no_progress,
) -> Profile:
    """Measure the benchmark matrices on this machine and keep the profile.

    Parameters
    ----------
    budget_s : float
    threads, dtype : int and str, optional
        Measure this number of threads, or type of values, only; by default all threads and one, float64
        and float32, the most usual first. Complex types are measured when they are asked for.
    device : str
        ``"cpu"``, ``"cuda"`` or ``"cuda:N"``.
    suites : sequence of str
        Names of the benchmark matrices of papers, which are measured instead of the usual ones and added to
        the profile: ``"guo"``, ``"wang"``, ``"hossain"`` (on a processor), ``"gahvari"``.
    on_progress : callable
        Called with the seconds done, the seconds expected in all, and what is being measured.

    Raises
    ------
    InputError
        If the budget, threads, dtype, device or a suite cannot be.
    DeviceError
        If the device cannot be found, or is lost; what was measured until then is kept.
    BusyError, StorageError
        If another calibration runs, or the profile cannot be kept.
    """
    run = calibration(budget_s, threads=threads, dtype=dtype, device=device, suites=suites)
    run.on_progress = on_progress
    return run.run()


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
    run = calibration(budget_s, threads=threads, dtype=dtype, device=device, blocks=blocks, rates=True)
    run.on_progress = on_progress
    run.run()
    return bench_result(run)


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
    return twins_of(paths, _thread_counts(machine, threads), machine, dtype, on_matrix)


def bench_result(run: Calibration) -> BenchResult:
    """Return the figures of what a calibration has measured of the five-minute benchmark."""
    found = summary.ratings(run.records, run.machine, run.bandwidths, run.range_ends)
    return BenchResult(
        machine=run.machine,
        budget_s=run.budget_s,
        used_s=run.used_s,
        ratings=tuple(found),
        phases=run.phases,
        notes=(*run.notes, *summary.notes(found)),
        interrupted=run.interrupted,
    )


def calibration(
    budget_s: float,
    *,
    threads: int | None = None,
    dtype: str | None = None,
    device: str = "cpu",
    blocks: Sequence[str] | None = None,
    rates: bool = False,
    suites: Sequence[str] = (),
) -> Calibration:
    """Return the calibration that `calibrate` and, with `rates`, `bench` run; it tells how it went."""
    machine = machine_of(device)
    targets = [
        Target(machine.device, values, 32, count)
        for values in (("float64", "float32") if dtype is None else (dtype,))
        for count in _thread_counts(machine, threads)
    ]
    series = search_space.all_series(blocks)
    return Calibration(machine, targets, budget_s, series=series, rates=rates, suites=suites)


def _thread_counts(machine: Machine, threads: int | None) -> list[int]:
    """Return the numbers of threads to measure: those asked for, or all and one."""
    count = DEVICES.get(machine.device).threads(machine, threads)
    return [count, 1] if threads is None and count > 1 else [count]


def own_profile(
    A: Any,
    *,
    threads: int | None = None,
    dtype: str | None = None,
    device: str = "cpu",
    on_progress: Progress = no_progress,
) -> Profile:
    """Return this machine's profile, calibrated first, with a line on standard error, where it must be.

    Parameters
    ----------
    A, threads, dtype, device
        The question, as in `predict`.
    on_progress : callable
        As in `calibrate`.
    """
    machine = machine_of(device)
    target = target_of(A, machine, threads, dtype)
    profile = calibrated_profile(machine)
    if model_records(profile, target):
        return profile
    threads_text = DEVICES.get(target.device).threads_text(target.threads)
    what = f"{threads_text or target.device} and {target.dtype}"
    print(
        f"This machine has not been calibrated with {what}: calibrating for {QUICK_BUDGET_S:.0f} s first, "
        f"after compiling.",
        file=sys.stderr,
    )
    run = calibration(QUICK_BUDGET_S, threads=target.threads, dtype=target.dtype, device=device)
    run.on_progress = on_progress
    run.compile_kernels()
    return run.run()
