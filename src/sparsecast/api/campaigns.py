"""Campaigns: collections measured here, by one process or several, that go on where one was stopped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from sparsecast.api.executing import measure_here
from sparsecast.api.forecasting import choice
from sparsecast.api.matrices import named_problems
from sparsecast.benchmark.journal import USER_SUITE, kept, refuse_to_lose
from sparsecast.benchmark.run import Progress, no_progress
from sparsecast.devices import DEVICES
from sparsecast.devices.naming import machine_of
from sparsecast.errors import FormatError, InputError, MatrixSizeError, StorageError
from sparsecast.machines.machine import PROCESSOR, Machine
from sparsecast.matrices.problem import Problem
from sparsecast.matrices.shards import Shard
from sparsecast.measuring.energy import Meter
from sparsecast.records import Candidate, Record
from sparsecast.results.measurement import MeasuredCollection, Pending
from sparsecast.system.version import VERSION


@dataclass
class Keeper:
    """Measures matrices on this machine and keeps each at once; what is in `taken` is not measured again."""

    here: Machine
    keeps: bool = True
    meter: Meter | None = None
    taken: dict[tuple[str, str, Candidate], Record] = field(default_factory=dict)

    def take_over(self) -> None:
        """Take over what this version and its kernels measured; of several Records the last."""
        is_current = DEVICES.get(self.here.device).is_current
        self.taken = {
            (record.matrix, record.suite, record.candidate): record
            for record in kept(self.here).records
            if record.version == VERSION and record.regime == "warm" and is_current(record, is_here=True)
        }

    def measured(
        self, problem: Problem, candidates: Sequence[Candidate], suite: str = USER_SUITE
    ) -> tuple[list[Record], bool]:
        """Return a Record of each Candidate, fastest first, and whether one of them is new."""
        before = {each: self.taken.get((problem.specification, suite, each)) for each in candidates}
        taken = [record for record in before.values() if record]
        missing = [candidate for candidate, record in before.items() if record is None]
        records: list[Record] = []
        if missing and self.keeps:
            refuse_to_lose(self.here)
        try:
            if missing:
                energies = suite == USER_SUITE  # what is measured again tells how far times differ
                how: dict[str, Any] = {"keeps": self.keeps, "reads_energy": energies, "meter": self.meter}
                records = measure_here(problem, missing, self.here, suite=suite, **how)
        except (FormatError, MatrixSizeError):
            if not taken:
                raise  # else what is missing are those that do not fit, as before
        return sorted(taken + records, key=lambda record: record.time_s), bool(records)


def measure_all(
    matrices: Sequence[Any],
    *,
    shard: str | Shard | None = None,
    resume: bool = False,
    keeps: bool = True,
    meter: Meter | None = None,
    transpose: bool = False,
    on_progress: Progress = no_progress,
    **setting: Any,
) -> MeasuredCollection:
    """Measure the products of a collection, or of a shard of it, in every format that suits.

    A matrix that refuses is left out with its reason; an interrupted run gives what was done.

    Parameters
    ----------
    matrices, shard, resume, keeps, transpose, on_progress
        As in `evaluate`.
    meter
        As in `measure`.
    **setting
        `threads`, `dtype`, `device`, `vectors` and `values`, as in `predict`.

    Raises
    ------
    InputError
        If a folder has no matrix files, or there is no such shard.
    StorageError
        If nothing can be kept.
    """
    problems, refused = named_problems(matrices, shard)
    keeper = Keeper(machine_of(setting.get("device") or PROCESSOR), keeps, meter)
    if resume:
        keeper.take_over()
    done, start_s = MeasuredCollection(keeper.here.name, refused=refused), perf_counter()
    try:
        for number, (name, problem) in enumerate(problems.items(), 1):
            try:
                asked = problem.transposed() if transpose else problem
                records, is_new = keeper.measured(asked, choice(asked, **setting).candidates)
                done.rows += [{"matrix": name, "record": record, "forecast": None} for record in records]
                done.taken_over += not is_new
            except StorageError:
                raise  # it would be the same with every other matrix
            except InputError as error:
                refused[name] = str(error)
            used_s = perf_counter() - start_s
            on_progress(used_s, used_s * len(problems) / number, name)
    except KeyboardInterrupt:
        done.interrupted = True
    return done


def pending(matrices: Sequence[Any], shard: str | Shard | None = None, device: str = PROCESSOR) -> Pending:
    """Return the matrices of a collection, or of a shard of it, and how many Records each has already."""
    problems, refused = named_problems(matrices, shard)
    keeper = Keeper(machine_of(device))
    keeper.take_over()
    counts = Counter(matrix for matrix, _, _ in keeper.taken)
    rows = [{"matrix": name, "kept": counts[problem.specification]} for name, problem in problems.items()]
    return Pending(str(Shard.of(shard)) if shard else None, rows, refused)
