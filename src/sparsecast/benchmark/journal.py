"""Journals: each measurement is written at once, in one line, so that a killed run loses nothing.

What users measured on a machine is kept in two, products of one process and of many ranks, for models to
learn from and to be scored on. A line is ``{"schema": ..., KIND: ...}``, with one of the kinds of `_READ`.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sparsecast.errors import ProfileError
from sparsecast.machines import storage
from sparsecast.machines.machine import Machine
from sparsecast.machines.profile import MatrixEntry, Profile
from sparsecast.matrices.problem import Problem
from sparsecast.records import SCHEMA_VERSION, DistributedRecord, MicroBenchmark, Record

#: Suites of kept Records: what users measured; what an evaluation measured of it once more, minutes later,
#: which tells the noise; and trials of plans, of few samples. No model learns from the last two.
USER_SUITE, AGAIN_SUITE, TRIED_SUITE = "user", "user again", "tried"


@dataclass
class Measurements:
    """What a journal holds; by specification the matrices that its Records name."""

    records: list[Record] = field(default_factory=list)
    matrices: dict[str, MatrixEntry] = field(default_factory=dict)
    distributed: list[DistributedRecord] = field(default_factory=list)
    microbenchmarks: list[MicroBenchmark] = field(default_factory=list)

    def add(self, problem: Problem, records: Iterable[Record]) -> None:
        self.matrices[problem.specification] = _entry(problem)
        self.records += records

    def into(self, profile: Profile) -> Profile:
        """Return the profile with these measurements; a new Record replaces the old one of the same thing."""
        profile = profile.with_records(self.records, self.matrices.values())
        return profile.with_microbenchmarks(self.microbenchmarks)


def _entry(problem: Problem) -> MatrixEntry:
    return MatrixEntry(problem.specification, problem.name, problem.structure)


@contextmanager
def lines(path: Path) -> Iterator[Callable[[str, Mapping[str, Any]], None]]:
    """Open a journal for appending; give a function that writes a kind and its plain data.

    A StorageError says that a line cannot be written.
    """
    with storage.journal(path) as append:
        yield lambda kind, stored: append(json.dumps({"schema": SCHEMA_VERSION, kind: stored}))


@contextmanager
def journal(path: Path, known: Iterable[str] = ()) -> Iterator[Callable[[Problem, Iterable[Record]], None]]:
    """Open a journal for appending; give a function that writes a problem, unless it is known, and Records.

    `known` are the specifications of the matrices that it already holds.
    """
    written = set(known)
    with lines(path) as append:

        def add(problem: Problem, records: Iterable[Record]) -> None:
            if problem.specification not in written:
                append("matrix", _entry(problem).to_dict())
                written.add(problem.specification)
            for record in records:
                append("record", record.to_row())

        yield add


def read_journal(path: Path) -> Measurements:
    """Return what a journal holds; nothing if it does not exist. A last line that was cut short is ignored.

    Raises
    ------
    ProfileError
        If another line is damaged, of another schema, or nobody can have measured it: with a NaN or a
        negative time.
    """
    found = Measurements()
    if not path.exists():
        return found
    text = path.read_text(encoding="utf-8", errors="replace")
    for number, line in enumerate(text[: text.rfind("\n") + 1].splitlines(), 1):
        match _parsed(line, path, number):
            case MatrixEntry() as entry:
                found.matrices[entry.specification] = entry
            case Record() as record:
                found.records.append(record)
            case DistributedRecord() as record:
                found.distributed.append(record)
            case MicroBenchmark() as point:
                found.microbenchmarks.append(point)
    found.records = [record for record in found.records if record.matrix in found.matrices]
    return found


#: How a line of each kind is read.
_READ: dict[str, Callable[[Any], Any]] = {
    "matrix": lambda stored: MatrixEntry(**stored),
    "record": Record.from_row,
    "distributed": DistributedRecord.from_dict,
    "microbenchmark": lambda stored: MicroBenchmark(**stored),
}


def _parsed(line: str, path: Path, number: int) -> Any:
    """Return what a line holds, a Record for one; refuse what nobody can have measured."""
    try:
        stored = json.loads(line)
        schema = stored.pop("schema")
        if schema != SCHEMA_VERSION:
            raise ProfileError(f"{path} has schema {schema}: expected {SCHEMA_VERSION}; remove the file")
        ((kind, content),) = stored.items()
        measured = _READ[kind](content)
        impossible = getattr(measured, "impossible", {})
    except ProfileError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ProfileError(f"{path} line {number} is damaged: expected a record; remove the file") from error
    for name, value in impossible.items():
        raise ProfileError(
            f"{path} line {number} has {name} {value:g}: expected a finite number that is not negative, and "
            f"no time of 0; remove the line, and measure again"
        )
    return measured


def _kept_path(machine: Machine, ending: str = ".jsonl") -> Path:
    return storage.home() / "measurements" / f"{machine.name}{ending}"


def keep(machine: Machine, problem: Problem, records: Iterable[Record]) -> None:
    """Keep Records that a user measured; a StorageError says that the data folder cannot be written."""
    path = _kept_path(machine)
    with storage.exclusive(path.with_suffix(".lock"), waits=True), journal(path) as add:
        add(problem, records)


def kept(machine: Machine) -> Measurements:
    """Return all that users measured on a machine; a ProfileError says that the journal is damaged."""
    return read_journal(_kept_path(machine))


def keep_distributed(machine: Machine, records: Iterable[DistributedRecord]) -> None:
    """Keep products that a user measured on many ranks."""
    path = _kept_path(machine, ".distributed.jsonl")
    with storage.exclusive(path.with_suffix(".lock"), waits=True), lines(path) as append:
        for record in records:
            append("distributed", dataclasses.asdict(record))


def kept_distributed(machine: Machine) -> tuple[DistributedRecord, ...]:
    """Return the products of many ranks that were kept of a machine, in the order measured."""
    return tuple(read_journal(_kept_path(machine, ".distributed.jsonl")).distributed)


def refuse_to_lose(machine: Machine) -> None:
    """Raise a StorageError if nothing can be kept of a machine, before hours of measuring."""
    storage.ensure_writable(_kept_path(machine).parent)


def with_kept(profile: Profile) -> Profile:
    """Return a profile with the kept Records of its machine; a later Record replaces an earlier one.

    A ProfileError says that their journal is damaged.
    """
    return kept(profile.machine).into(profile)
