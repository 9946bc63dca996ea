"""Campaigns: collections measured here, by one process or several, and their Records merged and compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, TypedDict, Unpack

from sparsecast.api.executing import measure_here
from sparsecast.api.matrices import left_out, named_problems
from sparsecast.api.session import Session
from sparsecast.benchmark.journal import USER_SUITE, kept, measurements_folder
from sparsecast.benchmark.record_files import MergedRecords, differences
from sparsecast.benchmark.run import Progress, no_progress
from sparsecast.devices import DEVICES, machine_of
from sparsecast.errors import FormatError, MatrixSizeError
from sparsecast.machines.machine import PROCESSOR, Machine
from sparsecast.machines.storage import ensure_writable
from sparsecast.matrices.problem import Problem
from sparsecast.matrices.shards import Shard
from sparsecast.measuring.energy import Meter
from sparsecast.records import Candidate, Record
from sparsecast.results.differences import Differences
from sparsecast.results.measurement import MeasuredCollection, Pending
from sparsecast.system.files import Place
from sparsecast.system.version import VERSION

#: What is done with a matrix: its name, and its problem.
Turn = Callable[[str, Problem], object]


@dataclass
class Campaign:
    """A collection that is measured on this machine, one matrix after the other, each kept at once.

    `refused` has the reasons of matrices that are left out; what is in `taken` is not measured again.
    """

    here: Machine
    problems: dict[str, Problem]
    refused: dict[str, str]
    keeps: bool = True
    meter: Meter | None = None
    transpose: bool = False
    on_progress: Progress = no_progress
    taken: dict[tuple[str, str, Candidate], Record] = field(default_factory=dict)

    def take_over(self) -> None:
        """Take over what this version and its kernels measured; of several Records the last."""
        is_current = DEVICES.get(self.here.device).is_current
        self.taken = {
            (record.matrix, record.suite, record.candidate): record
            for record in kept(self.here).records
            if record.version == VERSION and record.regime == "warm" and is_current(record, is_here=True)
        }

    def run(self, turns: Iterable[tuple[str, Turn]], count: int) -> bool:
        """Take turns at matrices, `count` of them, and let go of each; return whether the user stopped it."""
        start_s = perf_counter()
        try:
            for done, (name, turn) in enumerate(turns, 1):
                problem = self.problems[name]
                with left_out(name, self.refused):
                    turn(name, problem.transposed() if self.transpose else problem)
                self.problems[name] = problem.released()
                used_s = perf_counter() - start_s
                self.on_progress(used_s, used_s * count / done, name)
        except KeyboardInterrupt:
            return True
        return False

    def measured(
        self, problem: Problem, candidates: Sequence[Candidate], suite: str = USER_SUITE
    ) -> tuple[list[Record], bool]:
        """Return a Record of each Candidate, fastest first, and whether one of them is new."""
        before = {each: self.taken.get((problem.specification, suite, each)) for each in candidates}
        taken = [record for record in before.values() if record]
        missing = [candidate for candidate, record in before.items() if record is None]
        records: list[Record] = []
        if missing and self.keeps:
            ensure_writable(measurements_folder(self.here))  # before hours of measuring
        try:
            if missing:
                energies = suite == USER_SUITE  # what is measured again tells how far times differ
                how: dict[str, Any] = {"keeps": self.keeps, "reads_energy": energies, "meter": self.meter}
                records = measure_here(problem, missing, self.here, suite=suite, **how)
        except (FormatError, MatrixSizeError):
            if not taken:
                raise  # else what is missing are those that do not fit, as before
        return sorted(taken + records, key=lambda record: record.time_s), bool(records)


class CollectionOptions(TypedDict, total=False):
    """How a collection is measured.

    With `keeps`, the default, each matrix' Records are kept in the data folder at once, for models to learn
    from and to be scored on. With `resume`, Records that were kept are taken over, whatever their age: what
    the same version of Sparsecast and of its kernels measured is not measured again, so that a run that was
    killed goes on where it stopped. `shard` is the part of the matrices to measure: ``"I/N"``, part I of N,
    the same whatever their order, or ``"slurm"``, that of the task of a Slurm array. With `transpose`,
    products are those with the transposes, of matrices that differ from these. `on_progress` is called after
    each matrix with the seconds done, the seconds expected in all, and its name.
    """

    keeps: bool
    resume: bool
    shard: str | Shard | None
    transpose: bool
    on_progress: Progress


def campaign_of(
    machine: Machine, matrices: Sequence[Any], options: CollectionOptions, meter: Meter | None = None
) -> Campaign:
    """Return the campaign that measures a collection, with what was kept where it resumes."""
    problems, refused = named_problems(matrices, options.get("shard"))
    campaign = Campaign(
        machine,
        problems,
        refused,
        options.get("keeps", True),
        meter,
        options.get("transpose", False),
        options.get("on_progress", no_progress),
    )
    if options.get("resume"):
        campaign.take_over()
    return campaign


def measure_all(
    session: Session,
    matrices: Sequence[Any],
    *,
    meter: Meter | None = None,
    **options: Unpack[CollectionOptions],
) -> MeasuredCollection:
    """Measure the products of a collection, or of a shard of it, in every format that suits.

    A matrix that refuses is left out with its reason; an interrupted run gives what was done.

    Parameters
    ----------
    session : Session
    matrices
        As in `Session.evaluate`.
    meter
        As in `Session.measure`.
    **options
        Those of `CollectionOptions`.

    Raises
    ------
    InputError
        If a folder has no matrix files, or there is no such shard.
    StorageError
        If nothing can be kept.
    """
    campaign = campaign_of(machine_of(session.setting.device or PROCESSOR), matrices, options, meter)
    done = MeasuredCollection(campaign.here.name, refused=campaign.refused)

    def measure(name: str, problem: Problem) -> None:
        records, is_new = campaign.measured(problem, session.choice(problem).candidates)
        done.rows += [{"matrix": name, "record": record, "forecast": None} for record in records]
        done.taken_over += not is_new

    problems = campaign.problems
    done.interrupted = campaign.run([(name, measure) for name in problems], len(problems))
    return done


def pending(matrices: Sequence[Any], shard: str | Shard | None = None, device: str = PROCESSOR) -> Pending:
    """Return the matrices of a collection, or of a shard of it, and how many Records each has already."""
    campaign = Campaign(machine_of(device), *named_problems(matrices, shard))
    campaign.take_over()
    counts = Counter(matrix for matrix, _, _ in campaign.taken)
    rows = [
        {"matrix": name, "kept": counts[problem.specification]} for name, problem in campaign.problems.items()
    ]
    return Pending(str(Shard.of(shard)) if shard else None, rows, campaign.refused)


def merge(places: Sequence[Place], output: Place) -> MergedRecords:
    """Write the Records of many files into one Parquet file, a row each, for any program that reads Parquet.

    Its columns are those of a Record, and ``schema``, ``machine``, ``host`` and ``matrix_name``.

    They are profiles, journals, merged files, or folders of them; without any, what is kept here. The output
    is a path, or an address such as ``"s3://BUCKET/records.parquet"``. A journal whose last line was cut
    counts up to there, with a note.

    An InputError says that nothing is there, or that it cannot be read, that one name stands for two
    machines, or that there are no Records; a ProfileError that a file is damaged; a StorageError that none
    can be written.
    """
    merged = MergedRecords.of(places or [measurements_folder()])
    merged.write(output)
    return merged


def compare_results(a: Place, b: Place) -> tuple[Differences, list[str]]:
    """Return how the measured times of B differ from those of A, and what of the files does not count.

    Each is a profile, journal or merged file, or a folder of them. Of several machines, each is compared with
    itself; of one each, one with the other. Errors are as from `merge`, and an InputError says that they have
    no machine, or no product, in common.
    """
    A, B = MergedRecords.of([a]), MergedRecords.of([b])
    return differences(A, B), [*A.notes, *B.notes]
