"""What a question is about: which machine, target, Records and model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sparsecast.api.inputs import as_problem
from sparsecast.benchmark.gahvari import summary
from sparsecast.benchmark.kept import with_kept
from sparsecast.errors import InputError, ProfileError
from sparsecast.features.structure import Structure
from sparsecast.kernels import KERNELS
from sparsecast.machines.gpu import detect_device, parse_device
from sparsecast.machines.machine import Machine, detect
from sparsecast.machines.profile import Profile, find_profile, user_path
from sparsecast.matrices.values import require_imaginary
from sparsecast.models import MODELS
from sparsecast.models.model import Model
from sparsecast.models.store import fitted
from sparsecast.models.training import TrainingSet
from sparsecast.planning.candidates import Target
from sparsecast.records import Record


def kind(machine: Machine) -> str:
    """Return what a machine with this description computes on: ``"cuda"`` or ``"cpu"``."""
    return "cuda" if machine.device else "cpu"


def machine_of(device: str) -> Machine:
    """Return this machine, with its GPU where `device` is ``"cuda"`` or ``"cuda:N"``.

    Raises
    ------
    InputError, DeviceError
        If `device` is nothing of that kind, or is not there.
    """
    named, index = parse_device(device)
    return replace(detect(), device=detect_device(index)) if named == "cuda" else detect()


def asked_machine(profile: Profile, device: str | None) -> Machine:
    """Return the machine of a profile as `device` asks for it: its GPU, or its processor."""
    if device is None or parse_device(device)[0] == kind(profile.machine):
        return profile.machine
    raise ProfileError(
        f"device '{device}' of profile {profile.name}: expected {kind(profile.machine)}, which it is of; "
        f"name that, or another profile"
    )


def named_device(device: str | None) -> str:
    """Return the device that a question without a profile is about."""
    return "cpu" if device is None else device


def checked_threads(machine: Machine, threads: int | None) -> int:
    """Return the threads that share the rows: of a GPU all take part, whatever a matrix looks like."""
    if machine.device is None:
        return machine.checked_threads(threads)
    if threads not in (None, 1):
        raise InputError(
            f"threads {threads} on a GPU: expected none, for all of its threads take part; leave them out"
        )
    return 1


def target_of(A: Any, machine: Machine, threads: int | None, dtype: str | None) -> Target:
    """Return what all candidates of a question share.

    Parameters
    ----------
    A : sparse matrix or Structure
    machine : Machine
        That is asked about: its GPU if it has one.
    threads, dtype
        As in `predict`.

    Raises
    ------
    InputError
        If the machine cannot do that.
    """
    device, threads = kind(machine), checked_threads(machine, threads)
    if isinstance(A, Structure):
        index_bits = 32 if max(A.nnz, A.rows, A.cols) < 2**31 else 64
        return Target(device, "float64" if dtype is None else dtype, index_bits, threads)
    matrix = as_problem(A).matrix
    # SciPy counts more than 2**31 - 1 entries with 64 bits, the columns may still have 32.
    index_bytes = max(matrix.indptr.itemsize, matrix.indices.itemsize)
    target = Target(device, matrix.dtype.name if dtype is None else dtype, 8 * index_bytes, threads)
    require_imaginary(matrix.dtype, target.dtype, f"a {matrix.dtype} matrix")
    return target


def met_profile(machine: Machine) -> Profile:
    """Return this machine's profile, an empty one where there is none."""
    here = user_path(machine.name)
    return find_profile(here=machine) if here.exists() else Profile(machine, ())


def require_own(profile_name: str, machine: Machine) -> None:
    """Raise an InputError if a profile is not that of `machine`, on which is to be measured."""
    if profile_name != machine.name:
        raise InputError(
            f"forecasts for {profile_name}: expected this machine, {machine.name}, to measure them on; "
            f"use its own profile"
        )


def answers(profile: Profile, target: Target) -> bool:
    """Tell whether a profile has Records to forecast a target from."""
    return bool(_model_records(profile, target))


def _model_records(profile: Profile, target: Target) -> list[Record]:
    """Return a target's Records but those of the five-minute benchmark, which no model is fitted to."""
    own = profile.select(device=target.device, dtype=target.dtype, threads=target.threads)
    return [
        record for record in own if record.suite not in (summary.SUITE, summary.AGAIN) and is_current(record)
    ]


def is_current(record: Record) -> bool:
    """Tell whether a Record is of a kernel as it is now."""
    candidate = record.candidate
    known = KERNELS[candidate.device]
    return candidate.format in known.names() and record.kernel_version == known.get(candidate.format).version


def records_for(profile: Profile, target: Target) -> list[Record]:
    """Return the Records to forecast a target from.

    Raises
    ------
    ProfileError
        If there are none.
    """
    records = _model_records(profile, target)
    if not records:
        threads = f" {target.threads} threads" if target.device == "cpu" else ""
        raise ProfileError(
            f"profile {profile.name} has no records for {target.device} {target.dtype}{threads}: "
            f"it has {contents(profile)}; calibrate for it, or ask for what it has"
        )
    return records


def training_for(profile: Profile, target: Target) -> TrainingSet:
    """Return what models learn from for a target: a profile's Records, and those that are kept.

    Raises
    ------
    ProfileError
        If the profile has none.
    """
    records_for(profile, target)
    whole = with_kept(profile)
    return TrainingSet.of(whole, _model_records(whole, target))


def fitted_model(profile: Profile, target: Target, name: str) -> Model:
    """Return the model of that name, fitted to the Records for a target."""
    return fitted(MODELS.get(name)(), training_for(profile, target))


def energy_model(profile: Profile, target: Target) -> Model | None:
    """Return the first model of energy that the Records for a target suffice for, if there is one."""
    if not any(record.energy_j is not None for record in profile.records):
        return None
    for name in MODELS.names():
        if MODELS.get(name).quantity == "energy":
            try:
                return fitted_model(profile, target, name)
            except ProfileError:
                continue  # another one may need less
    return None


def contents(profile: Profile) -> str:
    """Return in words what a profile has Records for."""
    counts: dict[str, int] = {}
    for record in profile.records:
        candidate = record.candidate
        plural = "s" if candidate.threads > 1 else ""
        threads = f" {candidate.threads} thread{plural}" if candidate.device == "cpu" else ""
        key = f"{candidate.device} {candidate.dtype}{threads}"
        counts[key] = counts.get(key, 0) + 1
    return ", ".join(f"{key} ({count} records)" for key, count in counts.items()) or "no records"
