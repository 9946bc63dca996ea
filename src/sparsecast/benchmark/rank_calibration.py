"""A calibration of ranks: micro-benchmarks, measured by all ranks within a budget, each kept at once.

Rank 0 decides what comes next, writes the journal and the profile. Ranks that do not take part sleep.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from sparsecast.benchmark.journal import lines, read_journal
from sparsecast.benchmark.run import Progress, no_progress
from sparsecast.distributed.microbenchmarks import Wanted, ready, wanted
from sparsecast.distributed.processes import Nodes, in_step
from sparsecast.distributed.timing import chains, cores_together, measure_together, triad
from sparsecast.errors import InputError
from sparsecast.machines import storage
from sparsecast.machines.machine import Machine
from sparsecast.machines.profile import Profile, user_path
from sparsecast.measuring.core_speed import CoreSpeed, reading
from sparsecast.records import MicroBenchmark
from sparsecast.system.version import VERSION

#: Seconds below which next to nothing gets measured.
LEAST_BUDGET_S = 2.0

#: Seconds that the samples of a micro-benchmark may wait for full speed of all cores.
_WAIT_S = 0.2

#: Seconds between two looks of a rank that does not take part.
_PAUSE_S = 0.001


@dataclass
class RankCalibration:
    """One run of the micro-benchmarks on the ranks of a communicator; all make one and run it."""

    comm: Any
    machine: Machine  # a node
    nodes: Nodes
    budget_s: float
    #: Called on rank 0 with the seconds done, the seconds expected in all, and what is being measured.
    on_progress: Progress = no_progress
    #: Where the profile is kept; by default its place in the user's data folder. Read on rank 0.
    path: Path | None = None
    #: What this run has measured so far; on all ranks that took part.
    measured: list[MicroBenchmark] = field(default_factory=list)
    left: int = 0  # micro-benchmarks that the budget did not suffice for
    used_s: float = 0.0
    #: Communicators of the members, with the speed of their cores, None where ranks share them.
    _groups: dict[tuple[int, ...], tuple[Any, CoreSpeed | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.budget_s >= LEAST_BUDGET_S:
            raise InputError(
                f"budget {self.budget_s:g} s: expected at least {LEAST_BUDGET_S:g} s; raise the budget"
            )

    def run(self) -> Profile | None:
        """Measure until all is measured or the budget is spent; save and return the profile on rank 0.

        What a run that was killed left in its journal is taken over, on as many ranks and nodes.
        """
        every, is_first = wanted(self.nodes, self.machine), self.comm.rank == 0
        compile_alone(self.comm)
        start_s = time.perf_counter()  # as in a calibration of one process, after compiling
        with ExitStack() as stack:
            append = in_step(self.comm, lambda: stack.enter_context(self._journal()) if is_first else None)
            todo = [place for place, one in enumerate(every) if is_first and one.key not in self._taken_over]
            for done in range(len(every) + 1):
                used_s = time.perf_counter() - start_s
                is_over = done >= len(todo) or used_s > self.budget_s
                place = self.comm.bcast(None if is_over else todo[done])  # what rank 0 chooses
                if is_first:
                    self.left = len(todo) - done
                if place is None:
                    break
                benchmark = every[place]
                if is_first:
                    whole_s = min(self.budget_s, used_s / done * len(todo)) if done else self.budget_s
                    item = f"{benchmark.kind} on {len(benchmark.members)} ranks"
                    self.on_progress(used_s, whole_s, item)
                measured = self._measured(benchmark)
                if append and measured:
                    append("microbenchmark", dataclasses.asdict(measured))
            self.used_s = time.perf_counter() - start_s
            if append is None:
                return None
            profile = self._before.with_microbenchmarks(self.measured)
            profile.save(self._path)
            journal_path(self._path).unlink(missing_ok=True)
            return profile

    @property
    def notes(self) -> list[str]:
        """What a reader must know of the measurements."""
        notes = self.nodes.notes()
        if self.left:
            notes.append(f"{self.left} micro-benchmarks were left out; a larger --budget measures them")
        return notes

    @contextmanager
    def _journal(self) -> Iterator[Callable[[str, Mapping[str, Any]], None]]:
        """Give rank 0 what keeps a measurement, after taking over what a killed run left."""
        self._path = self.path or user_path(self.machine.name)
        storage.ensure_writable(self._path.parent)
        with storage.exclusive(self._path.with_suffix(".lock")):
            is_there = self._path.exists()
            before = Profile.load_own(self._path, self.machine) if is_there else Profile(self.machine, ())
            taken_over = read_journal(journal_path(self._path))
            self._taken_over = {point.key for point in taken_over.microbenchmarks}
            self._before = taken_over.into(before)
            with lines(journal_path(self._path)) as append:
                yield append

    def _measured(self, benchmark: Wanted) -> MicroBenchmark | None:
        """Time a micro-benchmark on its members, while the others sleep."""
        members, kind = benchmark.members, benchmark.kind
        measured: MicroBenchmark | None = None
        takes_part, is_oversubscribed = self.comm.rank in members, self.nodes.is_oversubscribed(members)
        if members not in self._groups:  # made at first use by all; the others get one of theirs
            comm = self.comm.Split(0 if takes_part else 1, self.comm.rank)
            owns_cores = takes_part and not is_oversubscribed
            self._groups[members] = comm, cores_together(comm) if owns_cores else None
        if takes_part:
            comm, cores = self._groups[members]
            running = ready(benchmark, comm)
            timing = measure_together({kind: running.call}, running.clock, _WAIT_S, cores)[kind]
            measured = MicroBenchmark(
                kind=kind,
                ranks=len(members),
                nodes=benchmark.nodes,
                bytes=benchmark.bytes,
                neighbours=benchmark.neighbours,
                time_s=running.per_call * max(timing.time_s, float(np.finfo(float).tiny)),
                noise=timing.noise,
                is_oversubscribed=is_oversubscribed,
                measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
                version=VERSION,
            )
            self.measured.append(measured)
        everyone = self.comm.Ibarrier()
        while not everyone.Test():
            time.sleep(_PAUSE_S)
        return measured


def compile_alone(comm: Any) -> None:
    """Compile on rank 0 what all ranks then load: at once, each would compile it."""
    for is_turn in (comm.rank == 0, comm.rank != 0):
        if is_turn:
            reading(threads=1)
            a, b, c = np.zeros((3, 1))
            triad(a, b, c, 0.0)
            chains(8, 0.5)
        comm.Barrier()


def journal_path(path: Path) -> Path:
    """Return where the micro-benchmarks of a run are kept before they are in the profile."""
    return path.with_suffix(".ranks.journal")
