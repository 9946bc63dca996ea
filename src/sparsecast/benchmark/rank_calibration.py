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

from sparsecast.benchmark.journal import Measurements, lines, read_journal
from sparsecast.benchmark.run import Progress, no_progress
from sparsecast.distributed.messages import told
from sparsecast.distributed.microbenchmarks import Wanted, key_of, ready, unmeasured, wanted
from sparsecast.distributed.nodes import Nodes
from sparsecast.distributed.processes import in_step
from sparsecast.distributed.timing import cores_together, measure_together
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

#: What rank 0 says instead of the number of a micro-benchmark: there is none left.
_DONE = -1


@dataclass
class RankCalibration:
    """One run of the micro-benchmarks on the ranks of a communicator; all make one and run it.

    Attributes
    ----------
    machine : Machine
        A node.
    on_progress : callable
        Called on rank 0 with the seconds done, the seconds expected in all, and what is being measured.
    path : Path, optional
        Where the profile is kept; by default its place in the user's data folder. Read on rank 0.
    measured : list of MicroBenchmark
        What this run has measured so far; on all ranks that took part.
    left : int
        Micro-benchmarks that the budget did not suffice for.
    """

    comm: Any
    machine: Machine
    nodes: Nodes
    budget_s: float
    on_progress: Progress = no_progress
    path: Path | None = None
    measured: list[MicroBenchmark] = field(default_factory=list)
    left: int = 0
    used_s: float = 0.0
    _groups: dict[tuple[int, ...], _Group] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.budget_s >= LEAST_BUDGET_S:
            raise InputError(
                f"budget {self.budget_s:g} s: expected at least {LEAST_BUDGET_S:g} s; raise the budget"
            )

    def run(self) -> Profile | None:
        """Measure until all is measured or the budget is spent; save and return the profile on rank 0.

        What a run that was killed left in its journal is taken over, on as many ranks and nodes.

        Raises
        ------
        RanksError
            On all ranks, if rank 0 cannot write the profile, or another process calibrates this machine.
        """
        self._start_s = time.perf_counter()
        every = wanted(self.nodes, self.machine)
        compile_alone(self.comm)
        with self._kept() as keeper:
            for each in self._in_turn(every, keeper):
                self._measure(each, keeper)
            self.used_s = time.perf_counter() - self._start_s
            return keeper.save(self.measured) if keeper else None

    @property
    def notes(self) -> list[str]:
        """What a reader must know of the measurements."""
        notes = self.nodes.notes()
        if self.left:
            notes.append(f"{self.left} micro-benchmarks were left out; a larger --budget measures them")
        return notes

    @contextmanager
    def _kept(self) -> Iterator[_Keeper | None]:
        """Give rank 0 what keeps the measurements; nothing elsewhere."""
        with ExitStack() as stack:

            def begin() -> _Keeper | None:
                if self.comm.rank:
                    return None
                path = self.path or user_path(self.machine.name)
                return stack.enter_context(_keeper(path, self.machine))

            yield in_step(self.comm, begin)

    def _in_turn(self, every: list[Wanted], keeper: _Keeper | None) -> Iterator[Wanted]:
        """Give what rank 0 chooses, on all ranks, until nothing is left or there is no time."""
        taken_over = {key_of(point) for point in keeper.taken_over.microbenchmarks} if keeper else set()
        todo = unmeasured(every, taken_over)
        number = np.zeros(1, dtype=np.int64)
        for done in range(len(every) + 1):
            if keeper:
                used_s = time.perf_counter() - self._start_s
                is_over = done >= len(todo) or used_s > self.budget_s
                number[0] = _DONE if is_over else todo[done]
                self.left = len(todo) - done
            told(self.comm, number)
            if number[0] == _DONE:
                return
            each = every[int(number[0])]
            if keeper:
                whole_s = min(self.budget_s, used_s / done * len(todo)) if done else self.budget_s
                self.on_progress(used_s, whole_s, f"{each.kind} on {len(each.members)} ranks")
            yield each

    def _measure(self, each: Wanted, keeper: _Keeper | None) -> None:
        """Time a micro-benchmark on its members, while the others sleep."""
        group = self._group(each.members)
        if self.comm.rank in each.members:
            found = self._timed(each, group)
            self.measured.append(found)
            if keeper:
                keeper.keep(found)
        everyone = self.comm.Ibarrier()
        while not everyone.Test():
            time.sleep(_PAUSE_S)

    def _group(self, members: tuple[int, ...]) -> _Group:
        """Return the communicator of some ranks, made at first use by all; the others get one of theirs."""
        if members not in self._groups:
            takes_part = self.comm.rank in members
            comm = self.comm.Split(0 if takes_part else 1, self.comm.rank)
            owns_cores = takes_part and not self.nodes.is_oversubscribed(members)
            self._groups[members] = _Group(comm, cores_together(comm) if owns_cores else None)
        return self._groups[members]

    def _timed(self, each: Wanted, group: _Group) -> MicroBenchmark:
        running = ready(each, group.comm)
        timing = measure_together({each.kind: running.call}, running.clock, _WAIT_S, group.cores)[each.kind]
        return MicroBenchmark(
            kind=each.kind,
            ranks=len(each.members),
            nodes=each.nodes,
            bytes=each.bytes,
            neighbours=each.neighbours,
            time_s=running.per_call * max(timing.time_s, float(np.finfo(float).tiny)),
            noise=timing.noise,
            is_oversubscribed=self.nodes.is_oversubscribed(each.members),
            measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
            version=VERSION,
        )


@dataclass(frozen=True)
class _Group:
    """The communicator of ranks that measure together; cores are None where ranks share them."""

    comm: Any
    cores: CoreSpeed | None


def compile_alone(comm: Any) -> None:
    """Compile on rank 0 what all ranks then load: at once, each would compile it."""
    from sparsecast.distributed.streams import chains, triad

    for is_turn in (comm.rank == 0, comm.rank != 0):
        if is_turn:
            reading(threads=1)
            a, b, c = np.zeros((3, 1))
            triad(a, b, c, 0.0)
            chains(8, 0.5)
        comm.Barrier()


@dataclass
class _Keeper:
    """Where rank 0 keeps micro-benchmarks: a line of the journal each, and at the end the profile."""

    path: Path
    before: Profile
    taken_over: Measurements
    append: Callable[[str, Mapping[str, Any]], None]

    def keep(self, measured: MicroBenchmark) -> None:
        self.append("microbenchmark", dataclasses.asdict(measured))

    def save(self, measured: list[MicroBenchmark]) -> Profile:
        profile = self.taken_over.into(self.before).with_microbenchmarks(measured)
        profile.save(self.path)
        journal_path(self.path).unlink(missing_ok=True)
        return profile


@contextmanager
def _keeper(path: Path, machine: Machine) -> Iterator[_Keeper]:
    storage.ensure_writable(path.parent)
    with storage.exclusive(path.with_suffix(".lock")):
        before = Profile.load_own(path, machine) if path.exists() else Profile(machine, ())
        taken_over = read_journal(journal_path(path))
        with lines(journal_path(path)) as append:
            yield _Keeper(path, before, taken_over, append)


def journal_path(path: Path) -> Path:
    """Return where the micro-benchmarks of a run are kept before they are in the profile."""
    return path.with_suffix(".ranks.journal")
