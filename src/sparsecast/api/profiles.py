"""What a profile holds: the Records that answer a target, and what is to be said of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from sparsecast.benchmark.journal import AGAIN_SUITE, TRIED_SUITE, kept
from sparsecast.devices import DEVICES, parse_device, threads_text
from sparsecast.devices.target import Target
from sparsecast.errors import DisturbedError, InputError, ProfileError
from sparsecast.machines.machine import Machine
from sparsecast.machines.profile import Profile, find_profile, user_path
from sparsecast.matrices.gallery import gallery_matrices as gallery_matrices
from sparsecast.measuring.condition_monitor import CALIBRATE_AGAIN, Disturbance, disturbance
from sparsecast.models import MODELS, model_for
from sparsecast.models.model import Model
from sparsecast.models.store import fitted
from sparsecast.models.training import TrainingSet
from sparsecast.records import RATING_SUITES, Candidate, Record
from sparsecast.system.texts import counted


def asked_machine(profile: Profile, device: str | None) -> Machine:
    """Return the machine of a profile as `device` asks for it: its GPU, or its processor."""
    own = profile.machine.device
    if device in (None, own) or (own in DEVICES and parse_device(str(device))[0] == own):
        return profile.machine
    raise ProfileError(
        f"device '{device}' of profile {profile.name}: expected {profile.machine.device}, its device; "
        f"name that, or another profile"
    )


def calibrated_profile(machine: Machine) -> Profile:
    """Return this machine's profile, or an empty one if it has none."""
    return find_profile(here=machine) if user_path(machine.name).exists() else Profile(machine, ())


def require_own(profile_name: str, machine: Machine) -> None:
    """Raise an InputError if a profile is not that of `machine`, where the measurement will run."""
    if profile_name != machine.name:
        raise InputError(
            f"forecasts for {profile_name}: expected this machine, {machine.name}, where it is measured; "
            f"use its own profile"
        )


def model_records(profile: Profile, target: Target) -> list[Record]:
    """Return a target's Records that models may be fitted to.

    These are not those of the five-minute benchmark, nor trials, nor what was measured again for the noise,
    nor those of libraries that are not asked for, or of a version of them that a later one replaced.
    Those of libraries, and of several vectors, are nothing without Records of our formats with one.
    """
    own = profile.select(device=target.device, dtype=target.dtype, vectors=None)
    if target.is_published:  # kernels of others, which no version of ours replaces
        return [record for record in own if record.candidate.threads == target.threads]
    is_current = DEVICES.get(target.device).is_current
    unused = *RATING_SUITES, AGAIN_SUITE, TRIED_SUITE
    used = [r for r in own if r.suite not in unused and is_current(r) and target.asks_for(r)]
    if target.libraries:
        last = {r.candidate.format: r.kernel_version for r in sorted(used, key=lambda r: r.measured_at)}
        used = [r for r in used if r.kernel_version == last[r.candidate.format]]
    candidates = (record.candidate for record in used)
    return used if any(c.vectors == 1 and c.format not in target.libraries for c in candidates) else []


def records_for(profile: Profile, target: Target) -> list[Record]:
    """Return the Records to forecast a target from; a ProfileError says that there are none."""
    records = model_records(profile, target)
    if not records:
        raise ProfileError(
            f"profile {profile.name} has no records for {described(target)}: "
            f"it has {contents(profile)}; calibrate for it, or ask for what it has"
        )
    return records


def training_for(profile: Profile, target: Target) -> TrainingSet:
    """Return the training set for a target: the Records of a profile, some at least, and the kept ones."""
    records_for(profile, target)
    whole = kept(profile.machine).into(profile)
    return TrainingSet.of(whole, model_records(whole, target))


def measured_again(machine: Machine) -> list[Record]:
    """Return the Records of a machine that were measured once more, from which the noise follows."""
    return [
        record
        for record in kept(machine).records
        if record.suite == AGAIN_SUITE and DEVICES.get(record.candidate.device).is_current(record)
    ]


def energy_model(training: TrainingSet, name: str | None = None) -> Model | None:
    """Return a fitted model of energy; None where none is named, and too few Records have joules for it."""
    if name is None and all(record.energy_j is None for record in training.records):
        return None  # without a look at what was fitted before, which takes as long as a forecast
    model = MODELS.get(model_for("energy", name))()
    try:
        return fitted(model, training)
    except ProfileError:
        if name is not None:
            raise
        return None


def contents(profile: Profile) -> str:
    """Return in words what a profile has Records and micro-benchmarks for."""
    counts = Counter(
        described(each) + (f" {each.vectors} vectors" if each.vectors > 1 else "")
        for each in (record.candidate for record in profile.records)
    )
    held = [f"{key} ({counted(count, 'record')})" for key, count in counts.items()] or ["no records"]
    if profile.microbenchmarks:
        held.append(f"{len(profile.microbenchmarks)} micro-benchmarks of ranks")
    return ", ".join(held)


def origin(profile: Profile) -> str:
    """Return in words where a profile is from that was not measured here; empty where nobody said."""
    source = profile.machine.source
    return f"published: {source}" if source else ""


def described(about: Target | Candidate) -> str:
    """Return in words the device, the type of the values and the threads."""
    return f"{about.device} {about.dtype} {threads_text(about.device, about.threads)}".rstrip()


def disturbances(profile: Profile) -> dict[str, Disturbance]:
    """Return what disturbed the Records of a profile, for each device and number of threads that it has."""
    found = {}
    for device, threads in dict.fromkeys((r.candidate.device, r.candidate.threads) for r in profile.records):
        own = disturbed(profile.select(device=device, threads=threads))
        if own is not None:
            found[f"{device} {threads_text(device, threads)}".rstrip()] = own
    return found


def disturbed(records: Sequence[Record]) -> Disturbance | None:
    """Return what disturbed some Records of one number of threads, None if nothing did."""
    if not records:
        return None
    return disturbance([record.conditions for record in records], records[0].candidate.threads)


def refuse_disturbed(profile: Profile, target: Target) -> None:
    """Raise a DisturbedError if the Records of a target are no basis for a forecast."""
    found = disturbed(model_records(profile, target))
    if found is not None and found.is_unusable:
        raise DisturbedError(
            f"calibration of {described(target)}, {found}: expected fewer other programs, this is no basis "
            f"for a forecast; {CALIBRATE_AGAIN}, or ask --anyway (anyway=True)"
        )


def age_days(records: Sequence[Record]) -> float | None:
    """Return the days since the newest of some Records; None where no time of measurement is known."""
    dates = [datetime.fromisoformat(record.measured_at) for record in records if record.measured_at]
    return (datetime.now(UTC) - max(dates)) / timedelta(days=1) if dates else None
