"""Calibrations and profiles, also of published results: machines that are not here."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

from sparsecast.api.profiles import (
    calibrated_profile,
    contents,
    disturbances,
    model_records,
    origin,
)
from sparsecast.api.settings import refuse_unknown
from sparsecast.benchmark.published import import_published
from sparsecast.benchmark.run import Calibration, Progress, RatingSuite, no_progress, rating_suites
from sparsecast.devices import DEVICES, Threads, number_of
from sparsecast.devices import machine_of as machine_of
from sparsecast.devices.target import Target
from sparsecast.errors import ProfileError
from sparsecast.formats.libraries import chosen_libraries as chosen_libraries
from sparsecast.machines.machine import Machine, detect
from sparsecast.machines.profile import Profile, find_profile, known_profiles, missing_profiles
from sparsecast.machines.profile import user_path as user_path
from sparsecast.results.machines import Imported, Machines
from sparsecast.system.progress_events import TIMED, tell

#: Seconds of the calibration that starts automatically if the machine is not calibrated. Compiling, 20 to 35
#: seconds once, is not included: a slow machine would be left without forecasts for some formats.
QUICK_BUDGET_S = 55.0


def profile(name: str | Path | None = None, *, device: str = "cpu") -> Profile:
    """Return the profile of a device of this machine, or the profile with a name or path.

    Parameters
    ----------
    name : str or Path, optional
        Name of a profile of ``sparsecast machines``, or path of a profile's file; by default the profile of
        this machine.
    device : str
        Device of this machine, such as ``"cuda:1"``; the processor by default.

    Raises
    ------
    ProfileError
        If this machine has not been calibrated, or the file cannot be used.
    UnknownNameError
        If no profile has that name.
    DeviceError
        If a device of this machine is named and cannot be found.
    """
    return find_profile(name, None if name else machine_of(device))


def machines() -> tuple[Machine, dict[str, Profile | ProfileError]]:
    """Return this machine, and by name every profile at hand or the error if it cannot be used.

    Planned profiles that are not shipped yet are among those that cannot be used.
    """
    found: dict[str, Profile | ProfileError] = {}
    for name in (*known_profiles(), *missing_profiles()):
        try:
            found[name] = find_profile(name)
        except ProfileError as error:
            found[name] = error
    return detect(), found


def machines_at_hand(only: Profile | None = None) -> Machines:
    """Return this machine, and the contents, origin and disturbances of each profile at hand, or of one."""
    profiles: Mapping[str, Profile | ProfileError]
    here, profiles = machines() if only is None else (only.machine, {only.name: only})
    usable = {name: profile for name, profile in profiles.items() if isinstance(profile, Profile)}
    return Machines(
        here,
        {
            name: contents(profile) if isinstance(profile, Profile) else f"cannot be used: {profile}"
            for name, profile in profiles.items()
        },
        {name: source for name, profile in usable.items() if (source := origin(profile))},
        {name: profile.bandwidths for name, profile in usable.items() if profile.bandwidths},
        {
            name: [f"{what}: {why.sentence()}" for what, why in disturbances(profile).items()]
            for name, profile in usable.items()
        },
    )


def import_machine(
    path: str | Path | Sequence[str | Path], name: str, machine: str | None = None
) -> tuple[Imported, Path]:
    """Turn published results into a profile of the user's data folder, and return it with its place.

    `path` is a table, also with gzip, or Ginkgo's benchmark JSON, one file, a folder, or several together;
    `benchmark/published.py` and `benchmark/published_moments.py` say with which columns. An earlier import
    under the `name` is replaced. `machine` says which machine of the file it is, where it has several, and
    which it was, where the file names none.

    An InputError or a ProfileError says that the name cannot be, or that the file has another layout or times
    that cannot be.
    """
    paths = [path] if isinstance(path, str | Path) else path
    imported = import_published([Path(file) for file in paths], name, machine)
    return imported, Path(imported.profile.save())


class CalibrationOptions(TypedDict, total=False):
    """Options of a calibration.

    `threads` and `dtype` restrict it to one number of threads or one type of values; by default all threads
    and one thread, float64 and float32 are measured, the most usual first. Complex types are measured only if
    they are named. `device` is ``"cpu"``, the default, ``"cuda"`` or ``"cuda:N"``. `vectors` is the number of
    columns of X in Y = A X: Records of several vectors are added to the profile, for formats with a kernel
    for them. `suites` are names of the benchmark matrices of papers, from SUITES; they are measured instead
    of the usual ones and added to the profile. `library` names other libraries to measure beside the built-in
    formats, as in `Setting`.
    """

    threads: int | None
    dtype: str | None
    device: str
    vectors: int
    suites: Sequence[str]
    library: str | None


def calibrate(
    budget_s: float = 300.0, *, on_progress: Progress = no_progress, **options: Unpack[CalibrationOptions]
) -> Profile:
    """Measure the benchmark matrices on this machine and keep the profile.

    Parameters
    ----------
    budget_s : float
        Seconds to measure for, after compiling.
    on_progress : callable
        Called with the seconds done, the seconds expected in all, and what is being measured.
    **options
        `threads`, `dtype`, `device`, `vectors`, `suites` and `library`, as in `CalibrationOptions`.

    Raises
    ------
    InputError
        If the budget, threads, dtype, device, a suite or a library is invalid.
    DeviceError
        If the device cannot be found, or is lost; measurements made until then are kept.
    BusyError, StorageError
        If another calibration is running, or the profile cannot be kept.
    """
    run = calibration(budget_s, **options)
    run.on_progress = on_progress
    return run.run()


def calibration(
    budget_s: float, rating: RatingSuite | None = None, **options: Unpack[CalibrationOptions]
) -> Calibration:
    """Return the calibration that `calibrate` runs; the figures of `rating`, if given, come first."""
    refuse_unknown(CalibrationOptions, options)
    machine, vectors = machine_of(options.get("device", "cpu")), options.get("vectors", 1)
    libraries, dtype = chosen_libraries(options.get("library"), machine.device), options.get("dtype")
    threads = options.get("threads")
    most = DEVICES.get(machine.device).threads(machine, threads)
    targets = [
        Target(machine.device, values, 32, count, vectors=vectors, libraries=libraries)
        for values in (("float64", "float32") if dtype is None else (dtype,))
        for count in ([most, 1] if threads is None and most > 1 else [most])
    ]
    last = rating_suites() if vectors == 1 else []  # their figures are of one
    suites = options.get("suites", ())
    return Calibration(machine, targets, budget_s, rating=rating, last=last, suites=suites)


def own_profile(
    A: Any, *, threads: Threads = None, dtype: str | None = None, device: str | None = None
) -> Profile:
    """Return the profile of this machine for a question, as `profile_for` does."""
    device = "cpu" if device is None else device
    machine = machine_of(device)
    return profile_for(machine, Target.of(A, machine, number_of(threads), dtype), device)


def profile_for(machine: Machine, target: Target, device: str) -> Profile:
    """Return the profile of this machine with Records of a target.

    It is calibrated first if necessary, with a line on standard error, and its progress is reported.
    """
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
    library = ",".join(target.libraries) or None
    run = calibration(
        QUICK_BUDGET_S, threads=target.threads, dtype=target.dtype, device=device, library=library
    )
    run.on_progress = lambda done_s, total_s, item: tell(f"{TIMED}{item}", round(done_s), round(total_s))
    run.compile_kernels()
    profile = run.run()
    tell(TIMED, 0, 0)
    return profile
