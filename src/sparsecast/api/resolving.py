"""Find what a question is about: the machine, the target, the Records and the model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sparsecast.benchmark.evaluation import distinct_names
from sparsecast.benchmark.journal import AGAIN_SUITE, with_kept
from sparsecast.devices import DEVICES
from sparsecast.devices.naming import parse_device, threads_text
from sparsecast.devices.target import Target
from sparsecast.errors import InputError, ProfileError
from sparsecast.features import FEATURES
from sparsecast.features.analysis import structure as structure_of
from sparsecast.features.structure import Structure
from sparsecast.machines.machine import Machine
from sparsecast.machines.profile import Profile, find_profile, user_path
from sparsecast.matrices.problem import Problem
from sparsecast.matrices.reading import collected
from sparsecast.matrices.structure_files import COUNTS_PREFIX, counted_structure, read_structure
from sparsecast.matrices.values import require_imaginary
from sparsecast.models import MODELS, model_for
from sparsecast.models.model import Model
from sparsecast.models.store import fitted
from sparsecast.models.training import TrainingSet
from sparsecast.records import RATING_SUITES, Candidate, Record


def read_matrix(specification: str | Path) -> Problem:
    """Return the problem of a file, or of ``gallery:NAME?key=value&key=value``, its matrix read."""
    problem = Problem.named(specification)
    _ = problem.matrix  # now, so that what is wrong with it is said before anything else is done
    return problem


def read_question(text: str) -> tuple[str, Problem | Structure]:
    """Return the name of what a forecast is asked for, and its problem, or its Structure alone.

    `text` is as for `read_matrix`, a JSON file of a Structure, or ``counts:rows=R&cols=C&nnz=N``.
    """
    if text.startswith(COUNTS_PREFIX):
        return text, counted_structure(text)
    if Path(text).suffix.lower() == ".json":
        return read_structure(Path(text))
    problem = read_matrix(text)
    return problem.name, problem


def named_problems(matrices: Sequence[Any]) -> tuple[dict[str, Problem], dict[str, str]]:
    """Return the problems of a collection, each once and by a name of its own, and why others are none.

    Folders stand for their files.
    """
    found: dict[str, Problem] = {}
    refused = {}
    for number, item in enumerate(collected(matrices), 1):
        is_name = isinstance(item, str | Path)
        try:
            problem = Problem.named(item) if is_name else Problem.of(item, f"matrix {number}")
            found.setdefault(problem.specification, problem)
        except InputError as error:
            refused[str(item) if is_name else f"matrix {number}"] = str(error)
    names = distinct_names({key: problem.name for key, problem in found.items()})
    return {names[key]: problem for key, problem in found.items()}, refused


def structure(A: Any) -> Structure:
    """Return what models read of a sparse matrix.

    Parameters
    ----------
    A : sparse matrix, Problem or Structure
        Of shape (rows, cols); a Structure is returned as it is.
    """
    return A if isinstance(A, Structure) else Problem.of(A).structure


def shared_structure(problem: Problem) -> Structure:
    """Return the Structure of a matrix with all feature groups: for a file that answers any question."""
    found = problem.structure
    rest = structure_of(problem.matrix, groups=found.lacks(FEATURES.names()))
    return found.having(*rest.groups.values())


def structure_for(problem: Problem, groups: Sequence[str]) -> Structure:
    """Return what a forecast reads of a matrix, and those of `groups` that are computed on request only."""
    found = problem.sampled_structure
    wanted = found.lacks(groups)
    if not wanted:
        return found
    return found.having(*structure_of(problem.matrix, groups=wanted, is_sampled=True).groups.values())


def machine_of(device: str) -> Machine:
    """Return this machine with the device of a name such as ``"cuda:1"``, and compute on that from now on."""
    name, index = parse_device(device)
    return DEVICES.get(name).describe(index)


def asked_machine(profile: Profile, device: str | None) -> Machine:
    """Return the machine of a profile as `device` asks for it: its GPU, or its processor."""
    own = profile.machine.device
    if device in (None, own) or (own in DEVICES.names() and parse_device(str(device))[0] == own):
        return profile.machine
    raise ProfileError(
        f"device '{device}' of profile {profile.name}: expected {profile.machine.device}, its device; "
        f"name that, or another profile"
    )


def target_of(A: Any, machine: Machine, threads: int | None, dtype: str | None) -> Target:
    """Return what all candidates of a question about a sparse matrix or Structure share.

    Raises
    ------
    InputError
        If the machine that is asked about cannot do that.
    """
    threads = threads_on(machine, threads)
    if isinstance(A, Structure):
        index_bits = 32 if max(A.nnz, A.rows, A.cols) < 2**31 else 64
        return _target(machine, "float64" if dtype is None else dtype, index_bits, threads)
    matrix = Problem.of(A).matrix
    # SciPy counts more than 2**31 - 1 entries with 64 bits, the columns may still have 32.
    index_bytes = max(matrix.indptr.itemsize, matrix.indices.itemsize)
    target = _target(machine, matrix.dtype.name if dtype is None else dtype, 8 * index_bytes, threads)
    require_imaginary(matrix.dtype, target.dtype, f"a {matrix.dtype} matrix")
    return target


def stored_target(machine: Machine, dtype: str, threads: int | None) -> Target:
    """Return the target of a question about the Records of a machine, without a matrix."""
    return _target(machine, dtype, 32, threads_on(machine, threads))


def _target(machine: Machine, dtype: str, index_bits: int, threads: int) -> Target:
    is_published = machine.published_as is not None
    return Target(machine.device, dtype, index_bits, threads, is_published)


def threads_on(machine: Machine, asked: int | None) -> int:
    """Return the threads of the Candidates of a machine, for those asked for.

    Raises
    ------
    InputError
        If it has not as many, or its results are published, which do not say how many they had.
    """
    if machine.published_as is None:
        return DEVICES.get(machine.device).threads(machine, asked)
    if asked not in (None, 1):
        raise InputError(
            f"threads {asked} of the published results {machine.name}: expected none, because they do not "
            f"say how many they had; leave --threads out"
        )
    return 1


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

    These are not those of the five-minute benchmark, nor what was measured again for the noise alone.
    """
    own = profile.select(device=target.device, dtype=target.dtype, threads=target.threads)
    if profile.machine.published_as is not None:
        return own  # of kernels of others, which no version of ours replaces
    is_current = DEVICES.get(target.device).is_current
    return [r for r in own if r.suite not in (*RATING_SUITES, AGAIN_SUITE) and is_current(r)]


def records_for(profile: Profile, target: Target) -> list[Record]:
    """Return the Records to forecast a target from.

    Raises
    ------
    ProfileError
        If there are none.
    """
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
    whole = with_kept(profile)
    return TrainingSet.of(whole, model_records(whole, target))


def energy_model(training: TrainingSet, name: str | None = None) -> Model | None:
    """Return a fitted model of energy; None where none is named, and too few Records have joules for it."""
    model = MODELS.get(model_for("energy", name))()
    try:
        return fitted(model, training)
    except ProfileError:
        if name is not None:
            raise
        return None


def contents(profile: Profile) -> str:
    """Return in words what a profile has Records and micro-benchmarks for."""
    counts = Counter(described(record.candidate) for record in profile.records)
    held = [f"{key} ({count} records)" for key, count in counts.items()] or ["no records"]
    if profile.microbenchmarks:
        held.append(f"{len(profile.microbenchmarks)} micro-benchmarks of ranks")
    return ", ".join(held)


def origin(profile: Profile) -> str:
    """Return in words where a profile is from that was not measured here; empty where nobody said."""
    machine = profile.machine
    if machine.made:
        return machine.made.sentence(machine.name)
    return f"published: {machine.source}" if machine.source else ""


def described(about: Target | Candidate) -> str:
    """Return in words the device, the type of the values and the threads."""
    return f"{about.device} {about.dtype} {threads_text(about.device, about.threads)}".rstrip()
