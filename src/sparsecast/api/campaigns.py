"""Campaigns: collections measured here, by one process or several, that go on where one was stopped."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from sparsecast.api.executing import measure_here
from sparsecast.api.forecasting import choice
from sparsecast.api.matrices import named_problems
from sparsecast.benchmark.journal import USER_SUITE, keep, kept, refuse_to_lose
from sparsecast.benchmark.run import Progress, no_progress
from sparsecast.devices import DEVICES
from sparsecast.devices.naming import machine_of
from sparsecast.errors import FormatError, InputError, MatrixSizeError, StorageError
from sparsecast.machines.machine import PROCESSOR, Machine
from sparsecast.matrices.problem import Problem
from sparsecast.matrices.shards import Shard
from sparsecast.measuring.energy import Meter, is_modelled
from sparsecast.records import Candidate, Record
from sparsecast.results.measurement import MeasuredCollection, Pending
from sparsecast.system.version import VERSION


@dataclass
class Keeper:
    """Measures matrices on this machine, keeps each at once, and takes over what was kept before.

    `taken` are the Records that it takes over, by what they are of.
    """

    here: Machine
    keeps: bool = True
    meter: Meter | None = None
    taken: dict[tuple[str, str, Candidate], Record] = field(default_factory=dict)

    @classmethod
    def resuming(cls, here: Machine, keeps: bool = True, meter: Meter | None = None) -> Keeper:
        """Return one that takes over what this version and its kernels measured; of several the last."""
        is_current = DEVICES.get(here.device).is_current
        taken = {
            (record.matrix, record.suite, record.candidate): record
            for record in kept(here).records
            if record.version == VERSION and record.regime == "warm" and is_current(record)
        }
        return cls(here, keeps, meter, taken)

    def measured(
        self, problem: Problem, candidates: Sequence[Candidate], suite: str = USER_SUITE
    ) -> tuple[list[Record], bool]:
        """Return a Record of each Candidate, fastest first, and whether one of them is new."""
        keys = [(problem.specification, suite, candidate) for candidate in candidates]
        taken = [self.taken[key] for key in keys if key in self.taken]
        missing = [key[-1] for key in keys if key not in self.taken]
        records: list[Record] = []
        try:
            if missing:
                if self.keeps:
                    refuse_to_lose(self.here)
                energies = suite == USER_SUITE  # what is measured again tells how far times differ
                records = measure_here(
                    problem, missing, self.here, keeps=False, reads_energy=energies, meter=self.meter
                )
        except (FormatError, MatrixSizeError):
            if not taken:
                raise  # else what is missing are those that do not fit, as before
        records = [dataclasses.replace(record, suite=suite) for record in records]
        if self.keeps and records and not is_modelled(self.meter):
            keep(self.here, problem, records)
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
    problems, refused = named_problems(matrices, None if shard is None else Shard.of(shard))
    here = machine_of(setting.get("device") or PROCESSOR)
    keeper = Keeper.resuming(here, keeps, meter) if resume else Keeper(here, keeps, meter)
    done, start_s = MeasuredCollection(here.name, refused=refused), perf_counter()
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
    own = None if shard is None else Shard.of(shard)
    problems, refused = named_problems(matrices, own)
    counts = Counter(key[0] for key in Keeper.resuming(machine_of(device)).taken)
    rows = [{"matrix": name, "kept": counts[problem.specification]} for name, problem in problems.items()]
    return Pending(None if own is None else str(own), rows, refused)
