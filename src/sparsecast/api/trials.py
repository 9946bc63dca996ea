"""Models of strips tried on what was measured: with our fits and as printed, for experiments of papers."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from operator import itemgetter
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar

import numpy as np

from sparsecast.api.calibrating import calibration, profile
from sparsecast.api.campaigns import campaign_of
from sparsecast.api.profiles import model_records, require_own
from sparsecast.api.sessions import session
from sparsecast.benchmark.experiments import Experiment, ExperimentSetting
from sparsecast.benchmark.run import LEAST_BUDGET_S
from sparsecast.devices import DEVICES, machine_of
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
from sparsecast.records import Record
from sparsecast.results.paper import PaperReport, known_mean
from sparsecast.system.tabular import Column, Columns, Table, grouped
from sparsecast.system.texts import percent

#: Deviation of the row lengths of a matrix, over their mean, up to which they count as nearly constant.
ALIKE = 0.2

#: Benchmark matrices of a usual calibration.
USUAL_SUITE = "general"

#: What both papers compute with.
DTYPE = "float32"

#: The share of the budget for the benchmark matrices. The rest is for compiling and the named matrices.
_SUITE_SHARE = 0.75

#: Records, with the Structures of their matrices.
Tested = list[tuple[Record, Structure]]

#: The fits of a model, and their headings.
WAYS = {"ours": "our fits", "printed": "as printed"}


@dataclass(frozen=True, slots=True)
class Trial:
    """One measurement, and the forecasts of it."""

    record: Record
    structure: Structure  # of the matrix
    model: str
    #: Of the model by WAYS; of our own model, ``"sparsecast"``, where the same Records suffice for it.
    forecasts_s: Mapping[str, float]

    @property
    def matrix(self) -> str:
        """The specification of the matrix."""
        return self.record.matrix

    def error(self, way: str) -> float:
        """Return |forecast - time| / time."""
        return abs(self.forecasts_s[way] - self.record.time_s) / self.record.time_s

    def point(self, way: str, label: str) -> tuple[str, str, float, float]:
        """Return a point of the chart of forecasts: matrix, label, measured and forecast time."""
        return shown_name(self.matrix), label, self.record.time_s, self.forecasts_s[way]


def shown_name(matrix: str) -> str:
    """Return a specification of a matrix, of a file its name alone."""
    return Path(matrix.partition("?")[0]).name if matrix.startswith(FILE_PREFIX) else matrix


#: Columns of trials and of their mean errors.
MATRIX = Column("matrix", "matrix", text=shown_name)
TIMES: Columns = (
    Column("measured_s", "measured", "record.time_s"),
    *(Column(f"{way}_s", heading, f"forecasts_s.{way}") for way, heading in WAYS.items()),
)
ERRORS: Columns = tuple(Column(way, heading, text=percent) for way, heading in WAYS.items())
MEAN_ERRORS: Columns = (
    Column("matrices", "matrices"),
    *ERRORS,
    Column("paper", "the paper", text=percent),
    Column("sparsecast", "our model sparsecast", text=percent),
)


#: What is left out of a fit in turn.
SIZES = ("row lengths", "rows")

#: Columns of errors on what a fit has not seen.
LEFT_OUT: Columns = (
    Column("kernel", "kernel"),
    Column("model", "model"),
    *(
        dataclasses.replace(column, key=f"{what} {column.key}", heading=f"{what}: {column.heading}")
        for what in SIZES
        for column in (
            Column("groups", "in turn"),
            Column("records", "measurements"),
            *ERRORS,
            Column("median", "our fits, median", text=percent),
        )
    ),
)


def trial_columns(*kinds: Column) -> Columns:
    """Return the columns of trials: `kinds` after the matrix."""
    errors = (dataclasses.replace(each, value=partial(Trial.error, way=each.key)) for each in ERRORS)
    return (MATRIX, *kinds, *TIMES, *errors)


def mean_errors(trials: Sequence[Trial]) -> dict[str, Any]:
    """Return a row of MEAN_ERRORS without what the paper prints."""
    means = {
        way: known_mean(t.error(way) for t in trials if way in t.forecasts_s) for way in (*WAYS, "sparsecast")
    }
    return {"matrices": len({trial.matrix for trial in trials}), **means}


@dataclass(frozen=True, slots=True)
class Trials:
    """Models of a paper on what was measured."""

    profile: Profile  # whose Records they are
    target: Target
    fitted: tuple[tuple[Model, Model], ...]  # with our fits, and as printed
    rows: tuple[Trial, ...]  # the shortest time first
    notes: tuple[str, ...]  # which models could not be fitted, and why; what there was no time for

    def left_out(self) -> Table:
        """Return the errors of each kernel on benchmark matrices that the fit has not seen.

        Those of one row length after the other are left out, then those of one number of rows. One without
        which a model cannot be fitted, because its paper fixes it, is not left out. Results of others are on
        no grid, and have no row.
        """
        known = [] if self.target.is_published else model_records(self.profile, self.target)
        records = [record for record in known if record.regime == "warm"]
        rows = [row for ours, _ in self.fitted for row in _left_out(self.profile, ours, records)]
        return Table(
            "Mean errors on row lengths, and on numbers of rows, left out of the fit", LEFT_OUT, rows
        )


def left_out_in_words(table: Table) -> str:
    """Return what a table of what was left out says of numbers of rows; empty where it says nothing."""
    rows = [(row["rows median"], row) for row in table.rows if row["rows median"] is not None]
    found = (f"{median:.1%} ({row['kernel']}, {row['model']})" for median, row in rows)
    return f"median errors of {', '.join(found)} on numbers of rows left out of the fit" if rows else ""


class StripExperiment(Experiment):
    """Models of strips next to the errors that their paper prints; `suite` has its benchmark matrices."""

    suite: ClassVar[str]

    @abstractmethod
    def models(self) -> list[type[Model]]:
        """Return the models of the paper."""

    def default_matrices(self) -> Sequence[str]:
        """Return the matrices to measure where none is named; none: what a calibration has of the gallery."""
        return ()

    @abstractmethod
    def report(self, trials: Trials, setting: ExperimentSetting, start_s: float | None) -> PaperReport:
        """Return the tables; what they need beside trials is measured if the run began at `start_s`."""

    def run(self, setting: ExperimentSetting) -> PaperReport:
        """Measure the benchmark matrices within the budget, then those that are named, or the default ones.

        What an earlier run measured is taken over. A ProfileError says that too little was measured for every
        model.
        """
        machine, start_s = machine_of(setting.device), perf_counter()
        threads = DEVICES.get(machine.device).threads(machine, None)
        named = setting.matrices or self.default_matrices()
        problems = [Problem.named(matrix) for matrix in collected(named)]
        for problem in problems:
            problem.specification  # noqa: B018 - what is no file is refused before anything is measured
        if setting.profile is not None:
            require_own(setting.profile.name, machine)
        else:  # a run that is interrupted ends the experiment, and what it measured is kept
            budget_s = max(_SUITE_SHARE * setting.budget_s, min(setting.budget_s, LEAST_BUDGET_S))
            how: dict[str, Any] = {"dtype": setting.dtype or DTYPE, "device": setting.device}
            run = calibration(budget_s, threads=threads, suites=[self.suite], **how)
            run.adds, run.on_progress = True, setting.on_progress
            run.compile_kernels()  # before the budget counts
            run.run()
            if run.interrupted:
                raise KeyboardInterrupt
        measured = setting.profile or profile(machine.name)
        target = Target.on(measured.machine, setting.dtype or DTYPE, threads)
        records = model_records(measured, target)
        fitted, notes = _fitted(measured, records, self.models())
        tested = [] if problems else _scored(measured, target)
        for number, problem in enumerate(problems):
            used_s = perf_counter() - start_s
            if used_s > setting.budget_s:
                late = ", ".join(problem.name for problem in problems[number:])
                notes.append(
                    f"No time for {late} in {setting.budget_s:g} s: run the command again, it goes on."
                )
                break
            setting.on_progress(min(used_s, setting.budget_s), setting.budget_s, problem.name)
            tested += [(r, problem.structure) for r in records_of(problem, target, setting, fitted)]
        trials = Trials(measured, target, fitted, *_tried(measured, records, fitted, tested, notes))
        if not trials.rows:
            nothing = f"No matrix was measured to try the models on in {setting.budget_s:g} s"
            trials = dataclasses.replace(trials, notes=(*trials.notes, f"{nothing}: run the command again."))
        return self.report(trials, setting, start_s)

    def from_records(self, profile: Profile, setting: ExperimentSetting) -> PaperReport:
        """Take what was measured before; the matrices of the setting choose among it.

        The results of others are in the type of values that they were published in, by default. An InputError
        says that a named matrix has no Records, a ProfileError that no model can be fitted to them.
        """
        is_published = profile.machine.published_as is not None
        device = profile.machine.device
        dtype = setting.dtype or (profile.records[0].candidate.dtype if is_published else DTYPE)
        counts = Counter(r.candidate.threads for r in profile.select(device=device, dtype=dtype))
        if not counts:
            raise ProfileError(
                f"profile {profile.name} has no records of {device} {dtype}: expected some; name what it has "
                f"by --dtype, or another profile"
            )
        [(threads, _)] = counts.most_common(1)
        target = dataclasses.replace(Target.on(profile.machine, dtype, None), threads=threads)
        records = model_records(profile, target)
        if target.is_published:
            # They lie on no grid of strips and lengths. So models are fitted to matrices of nearly constant
            # row length of half of the groups, and tried on those of the other half.
            held_out = set(sorted({group_of(record.matrix) for record in records})[1::2])
            alike = [(record, profile.structure(record)) for record in records]
            alike = [(r, s) for r, s in alike if s.row_lengths.deviation <= ALIKE * s.row_lengths.mean]
            records = [record for record, _ in alike if group_of(record.matrix) not in held_out]
            tested = [item for item in alike if group_of(item[0].matrix) in held_out]
        else:
            tested = _scored(profile, target)
        if names := {str(matrix) for matrix in setting.matrices}:
            if unknown := names - {record.matrix for record, _ in tested}:
                raise InputError(
                    f"{', '.join(sorted(unknown))}: expected matrices that {profile.name} has records of; "
                    f"name others, or measure them without --from"
                )
            tested = [(record, structure) for record, structure in tested if record.matrix in names]
        fitted, notes = _fitted(profile, records, self.models())
        trials = Trials(profile, target, fitted, *_tried(profile, records, fitted, tested, notes))
        return self.report(trials, setting, None)


def _fitted(
    profile: Profile, records: Sequence[Record], models: Sequence[type[Model]]
) -> tuple[tuple[tuple[Model, Model], ...], list[str]]:
    """Return each model fitted by us and as printed, and why others cannot be.

    A ProfileError says that the Records suffice for none.
    """
    training = TrainingSet.of(profile, records)
    fitted, refused = [], []
    for model in models:
        try:
            ours, printed = (model(**way).fit(training) for way in model.compared)
        except ProfileError as error:
            refused.append(error)
        else:
            fitted.append((ours, printed))
    if not fitted:
        raise refused[0]
    return tuple(fitted), [f"Left out: {error}" for error in refused]


def _left_out(profile: Profile, fitted: Model, records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return a row of LEFT_OUT for each kernel of a model."""
    own = [record for record in records if fitted.learns_from(record.suite) and fitted.learns_of(record)]
    nothing = dict.fromkeys(column.key for column in LEFT_OUT)
    rows: dict[str, dict[str, Any]] = {}
    for what in SIZES:
        errors = grouped(_errors_left_out(profile, fitted, own, what), itemgetter(1))
        for kernel, found in errors.items():
            row = rows.setdefault(kernel, nothing | {"kernel": kernel, "model": fitted.name})
            by_way = {way: [error for *_, its, error in found if its == way] for way in WAYS}
            ours = by_way["ours"]
            row |= {f"{what} {way}": known_mean(own_errors) for way, own_errors in by_way.items()}
            row[f"{what} groups"], row[f"{what} records"] = len({group for group, *_ in found}), len(ours)
            row[f"{what} median"] = float(np.median(ours)) if ours else None
    return [rows[kernel] for kernel in sorted(rows)]


def _errors_left_out(
    profile: Profile, fitted: Model, own: Sequence[Record], what: str
) -> Iterator[tuple[int, str, str, float]]:
    """Give the size that was left out, kernel, way and error of each forecast by a fit to the others."""

    def size(record: Record) -> int:
        structure = profile.structure(record)
        return round(structure.row_lengths.mean) if what == "row lengths" else structure.rows

    sizes = grouped(own, size)
    for group, of_group in sizes.items():
        others = chain.from_iterable(records for other, records in sizes.items() if other != group)
        rest = TrainingSet.of(profile, others)
        for way, settings in zip(WAYS, fitted.compared, strict=True):
            try:
                model = type(fitted)(**settings).fit(rest)
            except ProfileError:  # a length or a size that its paper fixes
                continue
            for record in filter(lambda record: model.serves(record.candidate), of_group):
                time_s = float(model.values(record.candidate, RowBlocks.of(profile.structure(record)))[0])
                kernel = f"{record.candidate.format.upper()} {record.candidate.kernel}"
                yield group, kernel, way, abs(time_s - record.time_s) / record.time_s


def _tried(
    profile: Profile,
    records: Sequence[Record],
    fitted: Sequence[tuple[Model, Model]],
    tested: Tested,
    notes: Sequence[str],
) -> tuple[tuple[Trial, ...], tuple[str, ...]]:
    """Try each model that serves a measurement, and our own, fitted to matrices that are not tried."""
    training = TrainingSet.of(profile, [record for record in records if record.suite not in SCORED_SUITES])
    own: Model | None = None
    if any(record.suite == USUAL_SUITE for record in training.records):
        try:
            own = store.fitted(MODELS.get(DEFAULT_MODEL)(), training)
        except ProfileError as error:
            notes = (*notes, f"Left out: {error}")
    else:
        why = "expected records of the usual benchmark matrices in this type, not of those of a paper alone"
        remedy = "sparsecast calibrate measures them"
        notes = (*notes, f"Left out: our model {DEFAULT_MODEL}: {why}; {remedy}")
    trials = []
    for record, structure in tested:
        blocks, candidate = RowBlocks.of(structure), record.candidate
        more = {"sparsecast": own} if own is not None and own.serves(candidate) else {}
        for ours, printed in fitted:
            if ours.serves(candidate):
                models = {"ours": ours, "printed": printed, **more}
                forecasts_s = {way: float(each.values(candidate, blocks)[0]) for way, each in models.items()}
                trials.append(Trial(record, structure, ours.name, forecasts_s))
    return tuple(sorted(trials, key=lambda trial: trial.record.time_s)), tuple(notes)


def _scored(profile: Profile, target: Target) -> Tested:
    """Return the Records of matrices that no model is fitted to."""
    return [
        (record, profile.structure(record))
        for record in model_records(profile, target)
        if record.suite in SCORED_SUITES and record.regime == "warm"
    ]


def records_of(
    problem: Problem, target: Target, setting: ExperimentSetting, fitted: Sequence[tuple[Model, Model]]
) -> list[Record]:
    """Return the Records of a matrix in every format, and of CSR with each kernel that is fitted.

    What is missing is measured here, and kept.
    """
    kernels = {kernel for ours, _ in fitted for kernel in ours.kernels("csr")}
    here = session(threads=target.threads, dtype=target.dtype, device=setting.device)
    chosen = here.choice(problem).candidates
    of_kernels = [dataclasses.replace(c, kernel=k) for c in chosen if c.format == "csr" for k in kernels]
    campaign = campaign_of(machine_of(setting.device), [problem], resume=True)
    records, _ = campaign.measured(problem, list(dict.fromkeys([*chosen, *of_kernels])))
    return records
