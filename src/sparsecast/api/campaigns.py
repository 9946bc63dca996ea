"""Campaigns: measure collections in one or several processes; merge and compare their Records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, TypedDict, Unpack

from sparsecast.api.executing import measure_here
from sparsecast.api.matrices import left_out, named_problems
from sparsecast.api.sessions import UNMEASURED, Session
from sparsecast.api.settings import refuse_unknown
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

#: Function that is called for a matrix, with its name and its problem.
Turn = Callable[[str, Problem], object]


@dataclass
class Campaign:
    """A collection that is measured on this machine; the Records of each matrix are kept at once.

    `refused` has the reasons for skipping matrices; the Records in `taken` are not measured again.
    """

    here: Machine
    problems: dict[str, Problem]
    refused: dict[str, str]
    keeps: bool = True
    meter: Meter | None = None
    transpose: bool = False
    on_progress: Progress = no_progress
    taken: dict[tuple[str, str, Candidate], Record] = field(default_factory=dict)

    def run(self, turns: Iterable[tuple[str, Turn]], count: int) -> bool:
        """Call the turns of `count` matrices, and release each matrix; return whether the user stopped it."""
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
        if not missing:
            return sorted(taken, key=lambda record: record.time_s), False
        if self.keeps:
            ensure_writable(measurements_folder(self.here))  # before hours of measuring
        records: list[Record] = []
        with suppress(FormatError, MatrixSizeError) if taken else nullcontext():
            # What is missing beside Records that are kept are those that do not fit, as before. What is
            # measured again tells how far times differ: it needs no energy.
            records, _ = measure_here(
                problem,
                missing,
                suite=suite,
                keeps=self.keeps,
                reads_energy=suite == USER_SUITE,
                meter=self.meter,
            )
        return sorted(taken + records, key=lambda record: record.time_s), bool(records)


class CollectionOptions(TypedDict, total=False):
    """Options for measuring a collection.

    With `keeps`, the default, the Records of each matrix are kept in the data folder at once, for models to
    learn from and to be scored on. With `resume`, kept Records of the same version of Sparsecast and of its
    kernels are reused, whatever their age, so that a killed run continues where it stopped. `shard` is the
    part of the matrices to measure: ``"I/N"`` is part I of N, whatever the order of the matrices, and
    ``"slurm"`` the part of this task of a Slurm array. With `transpose`, products are those with the
    transposes, for matrices that differ from their transposes. `on_progress` is called after each matrix with
    the elapsed seconds, the expected total in seconds, and the name of the matrix.
    """

    keeps: bool
    resume: bool
    shard: str | Shard | None
    transpose: bool
    on_progress: Progress


def campaign_of(
    here: Machine,
    matrices: Sequence[Any],
    *,
    meter: Meter | None = None,
    **options: Unpack[CollectionOptions],
) -> Campaign:
    """Return the campaign that measures a collection; with `resume` it reuses kept Records."""
    problems, refused = named_problems(matrices, options.get("shard"))
    taken = {}
    if options.get("resume"):  # what this version and its kernels measured; of several the last
        is_current = DEVICES.get(here.device).is_current
        taken = {
            (record.matrix, record.suite, record.candidate): record
            for record in kept(here).records
            if record.version == VERSION and record.regime == "warm" and is_current(record, is_here=True)
        }
    return Campaign(
        here,
        problems,
        refused,
        keeps=options.get("keeps", True),
        meter=meter,
        transpose=options.get("transpose", False),
        on_progress=options.get("on_progress", no_progress),
        taken=taken,
    )


def measure_all(
    session: Session,
    matrices: Sequence[Any],
    *,
    meter: Meter | None = None,
    **options: Unpack[CollectionOptions],
) -> MeasuredCollection:
    """Measure the products of a collection, or of a shard of it, in every suitable format.

    A matrix that cannot be measured is skipped with its reason; an interrupted run returns what was done. The
    arguments are as in `Session.evaluate` and `Session.measure`. An InputError says that a folder has no
    matrix files, or that there is no such shard; a StorageError that Records cannot be kept.
    """
    refuse_unknown(CollectionOptions, options)
    session.require_here()
    session.refuse_given("a measurement", *UNMEASURED)
    here = machine_of(session.setting.device or PROCESSOR)
    campaign = campaign_of(here, matrices, meter=meter, **options)
    done = MeasuredCollection(campaign.here.name, refused=campaign.refused)

    def measure(name: str, problem: Problem) -> None:
        records, is_new = campaign.measured(problem, session.choice(problem).candidates)
        done.rows += [{"matrix": name, "record": record, "forecast": None} for record in records]
        done.taken_over += not is_new

    problems = campaign.problems
    done.interrupted = campaign.run([(name, measure) for name in problems], len(problems))
    return done


def pending(matrices: Sequence[Any], shard: str | Shard | None = None, device: str = PROCESSOR) -> Pending:
    """Return the matrices of a collection, or of a shard of it, and the number of their kept Records."""
    campaign = campaign_of(machine_of(device), matrices, shard=shard, resume=True)
    counts = Counter(matrix for matrix, _, _ in campaign.taken)
    rows = [
        {"matrix": name, "kept": counts[problem.specification]} for name, problem in campaign.problems.items()
    ]
    return Pending(str(Shard.of(shard)) if shard else None, rows, campaign.refused)


def merge(places: Sequence[Place], output: Place) -> MergedRecords:
    """Merge the Records of many files into one Parquet file, one row per Record.

    The columns are those of a Record, and ``schema``, ``machine``, ``host`` and ``matrix_name``.

    The files are profiles, journals, merged files, or folders of them; without any, the Records of the local
    data folder are merged. The output is a path, or an address such as ``"s3://BUCKET/records.parquet"``. If
    the last line of a journal is incomplete, the lines before it are used, with a note.

    Raises an InputError if a file is missing or cannot be read, if one name stands for two machines, or if
    there are no Records; a ProfileError if a file is damaged; a StorageError if the output cannot be written.
    """
    merged = MergedRecords.of(places or [measurements_folder()])
    merged.write(output)
    return merged


def compare_results(a: Place, b: Place) -> tuple[Differences, list[str]]:
    """Return the differences of the measured times of B from those of A, and notes on ignored records.

    A and B are profiles, journals or merged files, or folders of them. If they have several machines, each is
    compared with itself; if each has one machine, these are compared. Errors are as in `merge`; in addition,
    an InputError is raised if they have no machine, or no product, in common.
    """
    A, B = MergedRecords.of([a]), MergedRecords.of([b])
    return differences(A, B), [*A.notes, *B.notes]
