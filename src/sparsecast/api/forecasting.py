"""Forecasts and plans."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from sparsecast.api.calibrating import own_profile
from sparsecast.api.resolving import (
    asked_machine,
    calibrated_profile,
    energy_model,
    machine_of,
    model_records,
    records_for,
    require_own,
    structure,
    structure_for,
    target_of,
)
from sparsecast.api.transferring import Basis, answered, bases
from sparsecast.api.trust import disturbed, drift_since
from sparsecast.benchmark.probing import Question
from sparsecast.benchmark.probing import probe as measure_probe
from sparsecast.devices import DEVICES
from sparsecast.devices.naming import parse_device, parse_devices
from sparsecast.devices.target import Target
from sparsecast.errors import InputError, MatrixSizeError, ProfileError
from sparsecast.features.analysis import structure as structure_of
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.structure import Structure
from sparsecast.machines.machine import PROCESSOR, detect
from sparsecast.machines.profile import Profile, find_profile
from sparsecast.machines.strips import strip_rows
from sparsecast.matrices.problem import Problem
from sparsecast.models import DEFAULT_MODEL, MODELS
from sparsecast.models.knowledge import Withheld, unusual_groups
from sparsecast.models.model import EnergyModel, Model
from sparsecast.models.power_files import PowerFile
from sparsecast.models.store import probe_correction
from sparsecast.models.training import TrainingSet
from sparsecast.planning.candidates import Choice, published_choice, whole_matrix
from sparsecast.planning.drift import NO_DRIFT, Drift
from sparsecast.planning.dynamic_programme import strip_statistics
from sparsecast.planning.placement import Placement, Placements, compare
from sparsecast.planning.plan import Plan, make_plan, refuse_objective
from sparsecast.planning.prediction import Prediction, Probe
from sparsecast.planning.transfer import transfer_s
from sparsecast.records import Candidate, Forecast

#: Seconds that `predict --probe` measures for.
PROBE_S = 2.0


def predict(
    A: Any,
    profile: Profile | None = None,
    *,
    threads: int | None = None,
    dtype: str | None = None,
    device: str | None = None,
    model: str | None = None,
    as_met: bool = False,
    probe_s: float | None = None,
    power_model: PowerFile | None = None,
) -> Prediction:
    """Forecast the product of a matrix in every format that suits it.

    A profile without Records of a type of values, or of a number of threads, answers from those that it has,
    with wider intervals and a sentence that says so (`sparsecast.models.transfer`), but for a probe.

    Parameters
    ----------
    A : sparse matrix or Structure
        Of its values only is read whether they mirror each other, and how many are 0.
    profile : Profile, optional
        Of the machine asked about; without one, that of this machine, which is calibrated for
        QUICK_BUDGET_S seconds first, after compiling, if it is not calibrated, with a line on standard error.
    threads : int, optional
        All of the machine's by default; none are named for a GPU.
    dtype : str, optional
        One of DTYPES; the matrix' own by default (whole numbers count as float64), float64 for a Structure.
        A real matrix may be asked for as complex, though not on a GPU.
    device : str, optional
        ``"cpu"``, ``"cuda"`` or ``"cuda:N"``; by default the GPU of `profile` if it is one's, else the CPU.
        A forecast needs neither the GPU nor a library for it.
    model : str, optional
        Name of the model that forecasts; DEFAULT_MODEL without one.
    as_met : bool
        Whether to forecast for the machine as it was in the calibration. Otherwise, on the machine of the
        profile, reference products are timed again, for some tenths of a second, and the forecasts are scaled
        by what has changed beyond their noise.
    probe_s : float, optional
        Seconds to measure for. CSR is measured here, whatever it takes, and the other forecasts are corrected
        by it; then those whose intervals still overlap with that of the fastest are built and measured, the
        fastest first. It tells how fast the machine is now, so no reference products are timed. The first
        probe with a profile learns how to correct, which takes some seconds once.
    power_model : PowerFile, optional
        What tells energy in place of the profile's Records.

    Raises
    ------
    InputError
        If the matrix, threads, dtype, device or model cannot be, or a complex matrix is asked for as real; if
        `probe_s` is not above 0, comes with `as_met`, or with a Structure or a profile that is not this
        machine's.
    ProfileError
        If `profile` has no Records of the device that suffice, or for a probe none of the question itself.
    """
    name = time_model(model)  # an unknown name is refused before anything is measured
    refuse_probe(probe_s, as_met, device, has_matrix=not isinstance(A, Structure))
    A = A if isinstance(A, Structure) else Problem.of(A)
    profile, target = _question(A, profile, threads, dtype, device)
    if probe_s is not None:
        _require_here(profile, device)
    machine = profile.machine
    start = perf_counter()
    found = A if isinstance(A, Structure) else _known_of(A, profile, name)
    asked = _asked(found, _bases(profile, target, probe_s), name, is_whole=not isinstance(A, Structure))
    probe = None
    if probe_s is not None:
        corrected, probe = _probed(A, asked.model, asked.training, target, probe_s)
        asked = replace(asked, model=corrected)
    forecasts, refused = asked.answer(found, target)
    energy = _energy(asked.basis, asked.model, power_model)
    if energy is not None:
        forecasts = _with_energy(forecasts, energy, asked.reduced(found))
    drift, notes = _trust(asked.basis, as_met or probe is not None)
    forecasts = sorted((drift.forecast(each, machine) for each in forecasts), key=lambda each: each.time_s)
    took = perf_counter() - start - (probe.used_s if probe else 0.0)
    notes = tuple(filter(None, (*asked.notes, *notes, probe.sentence() if probe else "")))
    return Prediction(
        tuple(forecasts),
        refused,
        found,
        profile.name,
        asked.model.name,
        took,
        notes,
        probe,
        asked.basis.transferred_from,
    )


def predict_table(
    matrices: Mapping[str, Structure],
    profile: Profile | None = None,
    *,
    threads: int | None = None,
    dtype: str | None = None,
    device: str | None = None,
    model: str | None = None,
    as_met: bool = False,
) -> Iterator[tuple[str, Prediction]]:
    """Forecast many matrices of which only Structures are known, in the order given.

    A model is fitted once for all matrices of which the same is known.

    Parameters
    ----------
    matrices : mapping of str to Structure
        At least one, by name.
    profile, threads, dtype, device, model, as_met
        As in `predict`, also in what is raised.
    """
    name = time_model(model)
    first = next(iter(matrices.values()))
    profile, target = _question(first, profile, threads, dtype, device)
    known_bases = bases(profile, target)
    fits: dict[Any, _Asked] = {}
    trust: dict[Target, tuple[Drift, tuple[str, ...]]] = {}
    for matrix, found in matrices.items():
        start = perf_counter()
        target = target_of(found, profile.machine, threads, dtype)
        known = frozenset(found.groups)
        if known not in fits:
            fits[known] = _asked(found, known_bases, name, is_whole=False)
        asked = fits[known]
        if asked.basis.source not in trust:
            trust[asked.basis.source] = _trust(asked.basis, as_met)
        drift, notes = trust[asked.basis.source]
        forecasts, refused = asked.answer(found, target)
        drifted = (drift.forecast(each, profile.machine) for each in forecasts)
        said = tuple(filter(None, (*asked.notes, *notes)))
        ordered = tuple(sorted(drifted, key=lambda each: each.time_s))
        took, source = perf_counter() - start, asked.basis.transferred_from
        yield matrix, Prediction(ordered, refused, found, profile.name, name, took, said, None, source)


@dataclass(frozen=True)
class _Asked:
    """A model for a question, fitted with no more than the question knows of its matrix.

    `published` are the Candidates of published results; None where our own rules choose.
    """

    basis: Basis
    model: Model
    training: TrainingSet
    unused: Withheld
    notes: tuple[str, ...]
    published: tuple[Candidate, ...] | None

    def reduced(self, found: Structure) -> Structure:
        return self.unused.structure(found)

    def answer(self, found: Structure, target: Target) -> tuple[list[Forecast], dict[str, str]]:
        found, machine = self.reduced(found), self.training.machine
        if self.published is None:
            choice = whole_matrix(found, target, machine, self.model.kernels)
        else:
            choice = published_choice(found, self.published, machine)
        forecasts = self.model.forecast(found, choice.candidates)
        return forecasts, choice.refused | _without_forecast(choice, forecasts, self.model)


def _asked(found: Structure, known: Sequence[Basis], name: str, *, is_whole: bool) -> _Asked:
    """Return the model for a question; `is_whole` where all can be known of its matrix."""
    return answered(known, lambda basis: _asked_of(found, basis, name, is_whole=is_whole))


def _asked_of(found: Structure, basis: Basis, name: str, *, is_whole: bool) -> _Asked:
    training = basis.training
    is_published = training.machine.published_as is not None
    withheld = Withheld() if is_whole else Withheld.of(found, training)
    unused = Withheld() if is_whole and not is_published else Withheld.of_question(found, training)
    for group in MODELS.get(name).groups:
        unused.structure(found).require(group)
    training = withheld.training(training)
    published = tuple(dict.fromkeys(record.candidate for record in training.records))
    fit, transferred = basis.fitted(name, training)
    made = training.machine.made
    said = made.sentence(training.machine.name) if made else ""
    notes = said, transferred, withheld.sentence() or unused.unused_sentence()
    return _Asked(basis, fit, training, unused, notes, published if is_published else None)


def _known_of(problem: Problem, profile: Profile, model: str = DEFAULT_MODEL) -> Structure:
    """Return what a forecast reads of a matrix; for published results also what only these have."""
    found = structure_for(problem, MODELS.get(model).groups)
    if profile.machine.published_as is None:
        return found
    wanted = found.lacks(unusual_groups(entry.structure for entry in profile.matrices.values()))
    return found.having(*structure_of(problem.matrix, groups=wanted).groups.values()) if wanted else found


def _bases(profile: Profile, target: Target, probe_s: float | None) -> list[Basis]:
    """Return what a question is answered from: with a probe, which learned from it, its own Records alone."""
    if probe_s is None:
        return bases(profile, target)
    records_for(profile, target)
    return [Basis(profile, target, target)]


def _question(
    A: Problem | Structure,
    profile: Profile | None,
    threads: int | None,
    dtype: str | None,
    device: str | None,
) -> tuple[Profile, Target]:
    """Return the profile that answers, this machine's if none is given, and what is asked of it."""
    profile = profile or own_profile(
        A, threads=threads, dtype=dtype, device=PROCESSOR if device is None else device
    )
    return profile, target_of(A, asked_machine(profile, device), threads, dtype)


def _trust(basis: Basis, as_met: bool) -> tuple[Drift, tuple[str, ...]]:
    """Return how the machine has drifted, and what to say of that and of the calibration."""
    records = records_for(basis.profile, basis.source)
    drift = NO_DRIFT if as_met else drift_since(basis.profile, basis.source, records)
    found = disturbed(basis.profile, records)
    said = (f"The calibration was {found.sentence()}" if found else "", drift.sentence())
    return drift, tuple(sentence for sentence in said if sentence)


def time_model(name: str | None) -> str:
    """Return the model that forecasts times, `name` or the default; refuse one of something else."""
    if name is None:
        return DEFAULT_MODEL
    quantity = MODELS.get(name).quantity
    if quantity != "time":
        raise InputError(
            f"model '{name}' forecasts {quantity}: expected a model of time; energy comes with it"
        )
    return name


def _with_energy(forecasts: Sequence[Forecast], energy: EnergyModel, found: Structure) -> list[Forecast]:
    """Return the forecasts with what a model of energy says of them."""
    joules = {each.candidate: each for each in energy.estimates(found, [f.candidate for f in forecasts])}
    return [
        replace(f, energy_j=own.value, energy_low_j=own.low, energy_high_j=own.high)
        if (own := joules.get(f.candidate))
        else f
        for f in forecasts
    ]


def _without_forecast(choice: Choice, forecasts: Sequence[Forecast], model: Model) -> dict[str, str]:
    """Return one line for each format that suits the matrix and that the model has no fit for."""
    known = {forecast.candidate.format for forecast in forecasts}
    return {
        candidate.format: f"{candidate.format.upper()} has no forecast: {model.lacking(candidate.format)}"
        for candidate in choice.candidates
        if candidate.format not in known
    }


def plan(
    A: Any,
    profile: Profile | None = None,
    *,
    iterations: int = 1000,
    threads: int | None = None,
    dtype: str | None = None,
    device: str | None = None,
    model: str | None = None,
    as_met: bool = False,
    probe_s: float | None = None,
    as_printed: bool = False,
    objective: str = "time",
    power_model: PowerFile | None = None,
) -> Plan:
    """Find the best way of doing `iterations` products with a matrix, conversion paid.

    Parameters
    ----------
    A : sparse matrix
    profile, threads, dtype, device, model, as_met, probe_s
        As in `predict`; a `device` of several, such as ``"cpu,cuda"``, is the best that `place` finds, and
        cannot be probed.
    iterations : int
        Products that will be done, at least 1.
    as_printed : bool
        Whether to plan as Guo et al. (2014), section 4, print it: the least time of one product on strips as
        theirs, with no conversion counted and no gain asked for. With the model ``"guo"`` it is their tool.
    objective : str
        What is least of all products and the conversion: ``"time"``, ``"energy"``, or ``"edp"``, energy times
        time.
    power_model : PowerFile, optional
        What tells energy in place of the profile's Records.

    Raises
    ------
    InputError
        If `iterations`, or what `predict` reads, cannot be, or a plan as printed is for several devices.
    ProfileError
        As in `predict`.
    """
    if iterations < 1:
        raise InputError(f"iterations {iterations}: expected at least 1; name the products you will do")
    name = time_model(model)
    refuse_probe(probe_s, as_met, device)
    _refuse_objective_for(objective, device, as_printed)
    matrix = Problem.of(A)
    if device is not None and "," in device:
        if as_printed:
            raise InputError(f"devices '{device}' for a plan as printed: expected one of them; name it")
        profiles = () if profile is None else (profile,)
        places = place(
            matrix, device, profiles, iterations=iterations, threads=threads, dtype=dtype, model=model
        )
        return places.best.plan
    profile, target = _question(matrix, profile, threads, dtype, device)
    machine, found = profile.machine, matrix.sampled_structure
    if machine.published_as is not None:
        raise ProfileError(
            f"a plan for the published results {profile.name}: expected a profile that calibrate wrote, with "
            f"kernels of ours and times of conversions; name another one, or ask predict"
        )
    if probe_s is not None:
        _require_here(profile, device)
    basis, (fit, transferred) = answered(
        _bases(profile, target, probe_s), lambda basis: (basis, basis.fitted(name, basis.training))
    )
    probe = None
    if probe_s is not None:
        fit, probe = _probed(matrix, fit, basis.training, target, probe_s)
    strip = strip_rows(machine, target.threads)
    statistics = strip_statistics(matrix.matrix.indptr, found, strip, as_printed)
    energy = _energy(basis, fit, power_model)
    if energy is None and objective != "time":
        raise without_joules(objective, profile)
    made = make_plan(statistics, fit, target, machine, iterations, as_printed, energy, objective)
    drift, notes = _trust(basis, as_met or probe is not None)
    size = int(target.format_bytes("csr", RowBlocks.of(found))[0])
    notes = tuple(filter(None, (transferred, *notes, probe.sentence() if probe else "")))
    source = basis.transferred_from
    return replace(drift.plan(made, size, machine), notes=notes, probe=probe, transferred_from=source)


def _energy(basis: Basis, fit: Model, power_model: PowerFile | None) -> EnergyModel | None:
    """Return the model of energy for a question, None without one."""
    if power_model is not None:
        return power_model.model(fit)
    return None if basis.transferred_from else energy_model(basis.training)


def without_joules(objective: str, profile: Profile) -> ProfileError:
    """Return the error of an objective that needs joules, of a profile that has none."""
    return ProfileError(
        f"objective '{objective}' on {profile.name}: expected records with joules, or a power model; "
        f"measure matrices where a meter is, or give --power-model FILE"
    )


def _refuse_objective_for(objective: str, device: str | None, as_printed: bool) -> None:
    refuse_objective(objective)
    if objective != "time" and (as_printed or (device is not None and "," in device)):
        raise InputError(
            f"objective '{objective}' for a plan as printed, or for several devices: expected time; leave it "
            f"out"
        )


def refuse_probe(probe_s: float | None, as_met: bool, device: str | None, *, has_matrix: bool = True) -> None:
    """Raise an InputError if no probe can be as it is asked for."""
    if probe_s is None:
        return
    if not 0 < probe_s < math.inf:
        raise InputError(f"a probe of {probe_s:g} s: expected seconds above 0; name how long to measure")
    if as_met:
        raise InputError(
            "a probe of the machine as it was calibrated: expected one of --probe and --as-met; leave one out"
        )
    if not has_matrix:
        raise InputError(
            "a probe without the matrix: expected the matrix, whose products are measured; name its file, or "
            "leave --probe out"
        )
    if device is not None and "," in device:
        raise InputError(f"a probe on {device}: expected one device; name one, or leave --probe out")


def _require_here(profile: Profile, device: str | None) -> None:
    """Raise an InputError if a profile is not of this machine, where a probe measures."""
    own = profile.machine.device
    here = (machine_of(device or own) if own in DEVICES.names() else detect()).name
    if profile.name != here:
        raise InputError(
            f"a probe for {profile.name}: expected this machine, {here}, where the products are measured; "
            f"use its own profile, or leave --probe out"
        )


def _probed(
    matrix: Problem, fit: Model, training: TrainingSet, target: Target, probe_s: float
) -> tuple[Model, Probe]:
    """Return a model corrected by what is measured of a matrix here, and what that was."""
    correction = probe_correction(fit, training)
    found = matrix.sampled_structure
    choice = whole_matrix(found, target, training.machine, fit.kernels)
    asked = Question(matrix, found, choice.candidates, fit, correction)
    return measure_probe(asked, DEVICES.get(target.device), probe_s)


def place(
    A: Any,
    devices: str,
    profiles: Sequence[Profile] = (),
    *,
    iterations: int = 1000,
    threads: int | None = None,
    dtype: str | None = None,
    model: str | None = None,
) -> Placements:
    """Find out where a number of products is best done, with all that must travel counted.

    Parameters
    ----------
    A, iterations, dtype, model
        As in `plan`.
    devices : str
        Such as ``"cpu,cuda"``: each as in `predict`.
    profiles : sequence of Profile
        Of the machines asked about; a device that none of them is of is this machine's own.
    threads : int, optional
        Of the CPU.

    Raises
    ------
    InputError, ProfileError
        As `plan`, and if a GPU's profile has no measured transfers.
    """
    matrix = Problem.of(A)
    given = {profile.machine.device: profile for profile in profiles}
    uncalibrated_devices(matrix, devices, profiles, threads=threads, dtype=dtype)
    found, refused = [], {}
    for name, kind in parse_devices(devices).items():
        asked: dict[str, Any] = {"threads": threads_of(name, threads), "dtype": dtype}
        chosen = given.get(kind) or own_profile(matrix, **asked, device=name)
        try:
            made = plan(matrix, chosen, iterations=iterations, **asked, device=name, model=model)
        except MatrixSizeError as error:
            refused[name] = str(error)
        else:
            found.append(Placement(chosen.name, made, _vectors_s(chosen, matrix.matrix, made)))
    if not found:
        raise MatrixSizeError("; ".join(refused.values()))
    return compare(found, refused)


def uncalibrated_devices(
    A: Any,
    devices: str,
    profiles: Sequence[Profile] = (),
    *,
    threads: int | None = None,
    dtype: str | None = None,
) -> list[str]:
    """Return the devices without a profile, of a question as in `place`.

    Raises
    ------
    InputError, ProfileError, DeviceError
        If a device cannot be found, cannot do such a product, or its profile has no Records for it: known
        before another one is calibrated for.
    """
    given = {profile.machine.device: profile for profile in profiles}
    unmet = []
    for name, kind in parse_devices(devices).items():
        machine = given[kind].machine if kind in given else machine_of(name)
        target = target_of(A, machine, threads_of(name, threads), dtype)
        if kind in given:
            bases(given[kind], target)
        else:
            unmet.append(name)
    return unmet


def threads_of(device: str, threads: int | None) -> int | None:
    """Return the threads for one device of a question about several; None for a GPU."""
    return threads if DEVICES.get(parse_device(device)[0]).shares_host else None


def _vectors_s(profile: Profile, matrix: csr_array[Any], made: Plan) -> float:
    """Return the forecast seconds to bring x to the device of a plan and y back."""
    candidate = made.baseline.candidate
    if DEVICES.get(candidate.device).shares_host:
        return 0.0
    rows, cols = (size * np.dtype(candidate.dtype).itemsize for size in matrix.shape)
    return transfer_s(profile, cols, "to device") + transfer_s(profile, rows, "from device")


def choice(A: Any, *, threads: int | None = None, dtype: str | None = None, device: str = "cpu") -> Choice:
    """Return the ways of doing the product that are open to a matrix here, and why others are not."""
    machine = machine_of(device)
    return whole_matrix(structure(A), target_of(A, machine, threads, dtype), machine)


def forecasts_at_hand(
    A: Any,
    wanted: str | None = None,
    *,
    threads: int | None = None,
    dtype: str | None = None,
    device: str = "cpu",
) -> Prediction | None:
    """Return the forecasts of this machine without calibrating for them; None if it has no Records of them.

    Raises
    ------
    InputError
        If `wanted` is the profile of another machine: its forecasts have no measurement here.
    """
    machine = machine_of(device)
    profile = find_profile(wanted) if wanted else calibrated_profile(machine)
    require_own(profile.name, machine)
    target = target_of(A, machine, threads, dtype)
    if not model_records(profile, target):
        return None
    found = predict(A, profile, threads=threads, dtype=dtype, device=device)
    return None if found.transferred_from else found
