"""Journals: each measurement is written at once, in one line, so that a killed run loses nothing.

What users measured on a machine is kept in one for each process that wrote, on whatever node: no writer
waits for another, and readers merge them. A line is ``{"schema": ..., KIND: ...}``, with one of the kinds of
`_READ`.
"""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from math import inf
from pathlib import Path
from typing import Any

import msgspec

from sparsecast.errors import ProfileError
from sparsecast.machines import storage
from sparsecast.machines.machine import Machine
from sparsecast.machines.profile import MatrixEntry, Profile
from sparsecast.matrices.problem import Problem
from sparsecast.records import SCHEMA_VERSION, DistributedRecord, MicroBenchmark, Record
from sparsecast.system import files
from sparsecast.system.files import Place

#: Suites of kept Records: what users measured; what an evaluation measured of it once more, minutes later,
#: from which the noise follows; and trials of plans, of few samples. No model learns from the last two.
USER_SUITE, AGAIN_SUITE, TRIED_SUITE = "user", "user again", "tried"


@dataclass
class Measurements:
    """What a journal holds; by specification the matrices that its Records name.

    `machine`, and its name in the network, are of the first line, None where a journal does not name them.
    `is_cut` says whether the last line is not whole, `left_out` how many Records lack their matrix.
    """

    records: list[Record] = field(default_factory=list)
    matrices: dict[str, MatrixEntry] = field(default_factory=dict)
    distributed: list[DistributedRecord] = field(default_factory=list)
    microbenchmarks: list[MicroBenchmark] = field(default_factory=list)
    machine: Machine | None = None
    host: str | None = None
    is_cut: bool = False
    left_out: int = 0

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


def read_journal(place: Place) -> Measurements:
    """Return what a journal holds, up to a last line that was cut short; nothing if it does not exist.

    A ProfileError says that it cannot be read, or that another line is damaged, of another schema, or
    impossible: with a NaN or a negative time.
    """
    try:
        *lines, rest = files.read(place, ProfileError).split(b"\n")
    except FileNotFoundError:
        return Measurements()
    found = Measurements(is_cut=bool(rest))
    for number, line in enumerate(lines, 1):
        match _parsed(line, files.shown(place), number):
            case Machine() as machine, host:
                found.machine, found.host = machine, host
            case MatrixEntry() as entry:
                found.matrices[entry.specification] = entry
            case Record() as record:
                found.records.append(record)
            case DistributedRecord() as record:
                found.distributed.append(record)
            case MicroBenchmark() as point:
                found.microbenchmarks.append(point)
    named = [record for record in found.records if record.matrix in found.matrices]
    found.records, found.left_out = named, len(found.records) - len(named)
    return found


#: How a line of each kind is read.
_READ: dict[str, Callable[[Any], Any]] = {
    "writer": lambda stored: (Machine.from_dict(stored["machine"]), stored["host"]),
    "matrix": lambda stored: MatrixEntry(**stored),
    "record": Record.from_row,
    "distributed": lambda stored: msgspec.convert(stored, DistributedRecord),
    "microbenchmark": lambda stored: msgspec.convert(stored, MicroBenchmark),
}


def _parsed(line: bytes, path: str, number: int) -> Any:
    """Return what a line holds, a Record for one; refuse what cannot have been measured."""
    try:
        try:
            stored = msgspec.json.decode(line)
        except msgspec.DecodeError:
            stored = json.loads(line)  # which reads a NaN, for the message to say so
        schema = stored.pop("schema")
        if schema != SCHEMA_VERSION:
            raise ProfileError(f"{path} has schema {schema!r}: expected {SCHEMA_VERSION}; move the file away")
        ((kind, content),) = stored.items()
        measured = _READ[kind](content)
        impossible = measured.impossible if isinstance(measured, Record) else {}
        if isinstance(measured, DistributedRecord | MicroBenchmark) and not 0 < measured.time_s < inf:
            impossible = {"time_s": measured.time_s}
    except ProfileError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError, msgspec.ValidationError) as error:
        raise ProfileError(f"{path} line {number} is damaged: expected a record; remove that line") from error
    for name, value in impossible.items():
        raise ProfileError(
            f"{path} line {number} has {name} {value:g}: expected a finite number that is not negative, and "
            f"no time of 0; remove the line, and measure again"
        )
    return measured


def measurements_folder(machine: Machine | None = None) -> Path:
    """Return the folder of what users measured on a machine, or on all; it need not exist."""
    return storage.home() / "measurements" / (machine.name if machine else "")


@cache
def _writer_name(process: int) -> str:
    """Return a name that no other process has, on whatever node: a fork has another number."""
    host = re.sub(r"[^A-Za-z0-9]+", "-", platform.node())
    return f"{host}-{process}-{secrets.token_hex(4)}"


#: Specifications of the matrices that this process has written, by journal.
_written: dict[Path, set[str]] = {}


def _own_journal(machine: Machine) -> Path:
    """Return the journal of this process, which names its writer in the first line."""
    path = measurements_folder(machine) / f"{_writer_name(os.getpid())}.jsonl"
    if not path.exists():
        _written[path] = set()
        with lines(path) as append:
            append("writer", {"machine": machine.to_dict(), "host": platform.node()})
    return path


def keep(machine: Machine, problem: Problem, records: Iterable[Record]) -> None:
    """Keep Records that a user measured; a StorageError says that the data folder cannot be written."""
    path = _own_journal(machine)
    with journal(path, _written[path]) as add:
        add(problem, records)
    _written[path].add(problem.specification)


def keep_distributed(machine: Machine, records: Iterable[DistributedRecord]) -> None:
    """Keep products that a user measured on many ranks."""
    with lines(_own_journal(machine)) as append:
        for record in records:
            append("distributed", dataclasses.asdict(record))


#: What was read of each journal, and the size and time of change that it had then.
_read: dict[Path, tuple[tuple[int, int], Measurements]] = {}


def kept(machine: Machine) -> Measurements:
    """Return all that users measured on a machine, by whatever process, in the order measured.

    A journal is read again only where it has changed. A ProfileError says that one is damaged, or was written
    on another machine.
    """
    found = Measurements()
    for path in sorted(measurements_folder(machine).glob("*.jsonl")):
        now = path.stat()
        stamp = now.st_size, now.st_mtime_ns
        if path not in _read or _read[path][0] != stamp:
            _read[path] = stamp, read_journal(path)
        own = _read[path][1]
        if own.machine is not None and own.machine.name != machine.name:
            raise ProfileError(
                f"{path} was written on another machine ({own.machine.name}): expected "
                f"{machine.name}; move it into the folder of its machine"
            )
        found.matrices |= own.matrices
        found.records += own.records
        found.distributed += own.distributed
    for measured in (found.records, found.distributed):
        measured.sort(key=lambda record: (record.measured_at, record.matrix))  # whatever journal has them
    return found
