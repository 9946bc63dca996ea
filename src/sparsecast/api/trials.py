"""Models of strips tried on what was measured: with our fits and as printed, for experiments of papers."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from sparsecast.api.calibrating import calibration, profile
from sparsecast.api.executing import measure
from sparsecast.api.forecasting import choice
from sparsecast.api.profiles import model_records, require_own
from sparsecast.benchmark.experiments import Setting
from sparsecast.benchmark.journal import kept
from sparsecast.benchmark.run import LEAST_BUDGET_S
from sparsecast.devices import DEVICES
from sparsecast.devices.naming import machine_of
from sparsecast.devices.target import Target
from sparsecast.errors import InputError, ProfileError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.structure import Structure
from sparsecast.machines.profile import Profile
from sparsecast.matrices.problem import FILE_PREFIX, Problem, group_of
from sparsecast.matrices.reading import collected
from sparsecast.models import DEFAULT_MODEL, MODELS, store
from sparsecast.models.model import SCORED_SUITES, Model
from sparsecast.models.training import TrainingSet
from sparsecast.records import Candidate, Record

#: Deviation of the row lengths of a matrix, over their mean, up to which they count as nearly constant.
ALIKE = 0.2

#: What both papers compute with.
DTYPE = "float32"

#: The share of the budget for the benchmark matrices. The rest is for compiling and the named matrices.
_SUITE_SHARE = 0.75


def shown_name(matrix: str) -> str:
    """Return a specification of a matrix, of a file its name alone."""
    return Path(matrix.partition("?")[0]).name if matrix.startswith(FILE_PREFIX) else matrix


@dataclass(frozen=True, slots=True)
class Trial:
    """One measurement, and what a model forecasts of it with our fits and with those of its paper.

    `sparsecast_s` is the forecast of our own model, fitted to the same Records; None where it cannot be.
    `structure` is of the matrix.
    """

    matrix: str
    candidate: Candidate
    model: str
    measured_s: float
    ours_s: float
    printed_s: float
    sparsecast_s: float | None
    structure: Structure

    @property
    def ours(self) -> float:
        """The error |forecast - time| / time with our fits."""
        return abs(self.ours_s - self.measured_s) / self.measured_s

    @property
    def printed(self) -> float:
        """The error with the fits as printed."""
        return abs(self.printed_s - self.measured_s) / self.measured_s

    @property
    def sparsecast(self) -> float | None:
        """The error of our own model."""
        return None if self.sparsecast_s is None else abs(self.sparsecast_s / self.measured_s - 1)


@dataclass(frozen=True, slots=True)
class Trials:
    """Models of a paper on what was measured.

    Attributes
    ----------
    profile : Profile
        Whose Records they are.
    target : Target
    fitted : tuple of (Model, Model)
        With our fits, and as printed.
    rows : tuple of Trial
        The shortest time first.
    notes : tuple of str
        Which models could not be fitted, and why.
    """

    profile: Profile
    target: Target
    fitted: tuple[tuple[Model, Model], ...]
    rows: tuple[Trial, ...]
    notes: tuple[str, ...]


def measured_trials(setting: Setting, models: Sequence[type[Model]], suite: str) -> Trials:
    """Measure a suite of benchmark matrices within the budget, then the matrices that are named.

    What an earlier run measured is taken over. The trials are of the named matrices, else of the gallery.
    Notes say what there was no time for.

    Raises
    ------
    InputError
        If the profile of the setting is not this machine's, or a matrix cannot be read.
    ProfileError
        If too little was measured for every model.
    """
    machine, start_s = machine_of(setting.device), perf_counter()
    dtype = setting.dtype or DTYPE
    threads = DEVICES.get(machine.device).threads(machine, None)
    problems = [Problem.named(matrix) for matrix in collected(setting.matrices)]
    for problem in problems:
        problem.specification  # noqa: B018 - what is no file is refused before anything is measured
    if setting.profile is not None:
        require_own(setting.profile.name, machine)
    else:
        budget_s = max(_SUITE_SHARE * setting.budget_s, min(setting.budget_s, LEAST_BUDGET_S))
        run = calibration(budget_s, threads=threads, dtype=dtype, device=setting.device, suites=[suite])
        run.adds = True
        run.on_progress = setting.on_progress
        run.compile_kernels()  # before the budget counts
        run.run()
        if run.interrupted:
            raise KeyboardInterrupt  # what was measured is kept; nothing more is
    measured = setting.profile or profile(machine.name)
    target = Target.on(measured.machine, dtype, threads)
    fitted, notes = _fitted(measured, model_records(measured, target), models)
    tested: list[tuple[Record, Structure]] = []
    for number, problem in enumerate(problems):
        used_s = perf_counter() - start_s
        if used_s > setting.budget_s:
            late = ", ".join(problem.name for problem in problems[number:])
            notes += (f"No time for {late} in {setting.budget_s:g} s: run the command again, it goes on.",)
            break
        setting.on_progress(min(used_s, setting.budget_s), setting.budget_s, problem.name)
        tested += [(r, problem.structure) for r in records_of(problem, target, setting, fitted)]
    ours, why = _own_model(measured, model_records(measured, target))
    rows = _trials(fitted, ours, tested if problems else _scored(measured, target))
    notes += why
    if not rows:
        notes += (
            f"No matrix was measured to try the models on in {setting.budget_s:g} s: run the command again.",
        )
    return Trials(measured, target, fitted, rows, notes)


def recorded_trials(profile: Profile, setting: Setting, models: Sequence[type[Model]]) -> Trials:
    """Return the trials on the Records of a profile; the matrices of the setting choose among them.

    The results of others are in the type of values that they were published in, by default.

    Raises
    ------
    InputError
        If a named matrix has no Records.
    ProfileError
        If no model can be fitted to the Records.
    """
    is_published = profile.machine.published_as is not None
    device = profile.machine.device
    dtype = setting.dtype or (profile.records[0].candidate.dtype if is_published else DTYPE)
    counts = Counter(r.candidate.threads for r in profile.select(device=device, dtype=dtype))
    if not counts:
        raise ProfileError(
            f"profile {profile.name} has no records of {device} {dtype}: expected some; name what it has by "
            f"--dtype, or another profile"
        )
    target = dataclasses.replace(Target.on(profile.machine, dtype, None), threads=counts.most_common(1)[0][0])
    records = model_records(profile, target)
    if target.is_published:
        records, tested = _halves(profile, records)
    else:
        tested = list(_scored(profile, target))
    if setting.matrices:
        names = {str(matrix) for matrix in setting.matrices}
        if unknown := names - {record.matrix for record, _ in tested}:
            raise InputError(
                f"{', '.join(sorted(unknown))}: expected matrices that {profile.name} has records of; "
                f"name others, or measure them without --from"
            )
        tested = [(record, structure) for record, structure in tested if record.matrix in names]
    fitted, notes = _fitted(profile, records, models)
    ours, why = _own_model(profile, records)
    return Trials(profile, target, fitted, _trials(fitted, ours, tested), (*notes, *why))


def _fitted(
    profile: Profile, records: Sequence[Record], models: Sequence[type[Model]]
) -> tuple[tuple[tuple[Model, Model], ...], tuple[str, ...]]:
    """Return each model fitted by us and as printed, and why others cannot be.

    A ProfileError says that the Records suffice for none.
    """
    training = TrainingSet.of(profile, records)
    fitted, refused = [], []
    for model in models:
        ways: list[Callable[[], Model]] = [lambda kind=model, way=way: kind(**way) for way in model.compared]  # type: ignore[misc]
        try:
            ours, printed = (make().fit(training) for make in ways)
        except ProfileError as error:
            refused.append(error)
        else:
            fitted.append((ours, printed))
    if not fitted:
        raise refused[0]
    return tuple(fitted), tuple(f"Left out: {error}" for error in refused)


def _own_model(profile: Profile, records: Sequence[Record]) -> tuple[Model | None, tuple[str, ...]]:
    """Return our own model, fitted to matrices that are not tried; or None, and why these do not suffice."""
    training = TrainingSet.of(profile, [record for record in records if record.suite not in SCORED_SUITES])
    try:
        return store.fitted(MODELS.get(DEFAULT_MODEL)(), training), ()
    except ProfileError as error:
        return None, (f"Left out: {error}",)


def _scored(profile: Profile, target: Target) -> Iterator[tuple[Record, Structure]]:
    """Give the Records of matrices that no model is fitted to."""
    for record in model_records(profile, target):
        if record.suite in SCORED_SUITES and record.regime == "warm":
            yield record, profile.structure(record)


def _halves(
    profile: Profile, records: Sequence[Record]
) -> tuple[list[Record], list[tuple[Record, Structure]]]:
    """Return what models are fitted to of the results of others, and what they are tried on.

    These lie on no grid of strips and lengths. So both are matrices of nearly constant row length, of half of
    the groups each.
    """
    alike = [
        (record, structure)
        for record in records
        if (lengths := (structure := profile.structure(record)).row_lengths).deviation <= ALIKE * lengths.mean
    ]
    held_out = set(sorted({group_of(record.matrix) for record in records})[1::2])
    fit = [record for record, _ in alike if group_of(record.matrix) not in held_out]
    return fit, [(record, structure) for record, structure in alike if group_of(record.matrix) in held_out]


def records_of(
    problem: Problem, target: Target, setting: Setting, fitted: Sequence[tuple[Model, Model]]
) -> list[Record]:
    """Return the Records of a matrix in every format, and of CSR with each kernel that is fitted.

    What is missing is measured here, and kept.
    """
    device, kernels = setting.device, {kernel for ours, _ in fitted for kernel in ours.kernels("csr")}
    is_current = DEVICES.get(target.device).is_current
    taken = [
        record
        for record in kept(machine_of(device)).records
        if record.matrix == problem.specification
        and (record.candidate.dtype, record.candidate.threads) == (target.dtype, target.threads)
        and record.suite in SCORED_SUITES
        and record.regime == "warm"
        and is_current(record)
    ]
    known = {record.candidate: record for record in taken}
    chosen = choice(problem, threads=target.threads, dtype=target.dtype, device=device).candidates
    every = [
        *chosen,
        *(dataclasses.replace(c, kernel=k) for c in chosen if c.format == "csr" for k in kernels),
    ]
    missing = [candidate for candidate in dict.fromkeys(every) if candidate not in known]
    if missing:
        known |= {record.candidate: record for record in measure(problem, missing, device=device)}
    return list(known.values())


def _trials(
    models: Sequence[tuple[Model, Model]],
    own: Model | None,
    tested: Iterator[tuple[Record, Structure]] | Sequence[tuple[Record, Structure]],
) -> tuple[Trial, ...]:
    """Return a trial for each measurement and model that serves it, the shortest time first."""
    trials = []
    for record, structure in tested:
        blocks = RowBlocks.of(structure)
        for ours, printed in models:
            if ours.serves(record.candidate):
                ours_s, printed_s = (
                    float(model.values(record.candidate, blocks)[0]) for model in (ours, printed)
                )
                own_s = None
                if own is not None and own.serves(record.candidate):
                    own_s = float(own.values(record.candidate, blocks)[0])
                trials.append(
                    Trial(
                        record.matrix,
                        record.candidate,
                        ours.name,
                        record.time_s,
                        ours_s,
                        printed_s,
                        own_s,
                        structure,
                    )
                )
    return tuple(sorted(trials, key=lambda trial: trial.measured_s))
