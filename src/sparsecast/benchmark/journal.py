"""Journals: each measurement is written at once, in one line, so that a killed run loses nothing.

What users measured on a machine is kept in one, for models to learn from and to be scored on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sparsecast.errors import ProfileError
from sparsecast.machines import storage
from sparsecast.machines.machine import Machine
from sparsecast.machines.profile import MatrixEntry, Profile
from sparsecast.matrices.problem import Problem
from sparsecast.records import SCHEMA_VERSION, Record

#: Suites of kept Records: what users measured, and what an evaluation measured of it once more, minutes
#: later. The latter tells the noise; no model learns from it.
USER_SUITE, AGAIN_SUITE = "user", "user again"


@dataclass
class Measurements:
    """Records, and by specification the matrices that they name."""

    records: list[Record] = field(default_factory=list)
    matrices: dict[str, MatrixEntry] = field(default_factory=dict)

    def add(self, problem: Problem, records: Iterable[Record]) -> None:
        self.matrices[problem.specification] = _entry(problem)
        self.records += records

    def into(self, profile: Profile) -> Profile:
        """Return the profile with these measurements; a new Record replaces the old one of the same thing."""
        return profile.with_records(self.records, self.matrices.values())


def _entry(problem: Problem) -> MatrixEntry:
    return MatrixEntry(problem.specification, problem.name, problem.structure)


@contextmanager
def journal(path: Path, known: Iterable[str] = ()) -> Iterator[Callable[[Problem, Iterable[Record]], None]]:
    """Open a journal for appending; give a function that writes a problem, unless it is known, and Records.

    `known` are the specifications of the matrices that it already holds. A StorageError says that a line
    cannot be written.
    """
    written = set(known)
    with storage.journal(path) as append:

        def add(problem: Problem, records: Iterable[Record]) -> None:
            lines: list[dict[str, Any]] = [{"record": record.to_row()} for record in records]
            if problem.specification not in written:
                lines.insert(0, {"matrix": _entry(problem).to_dict()})
                written.add(problem.specification)
            for line in lines:
                append(json.dumps({"schema": SCHEMA_VERSION, **line}))

        yield add


def read_journal(path: Path) -> Measurements:
    """Return what a journal holds; nothing if it does not exist. A last line that was cut short is ignored.

    Raises
    ------
    ProfileError
        If another line is damaged, of another schema, or a Record that nobody measured:
        with a NaN or a negative time.
    """
    found = Measurements()
    if not path.exists():
        return found
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    for number, line in enumerate(lines, 1):
        try:
            _take(json.loads(line), found, path, number)
        except ProfileError:  # also in the last line: it is whole
            raise
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            if number == len(lines):
                break
            raise ProfileError(
                f"{path} line {number} is damaged: expected a record; remove the file"
            ) from error
    found.records = [record for record in found.records if record.matrix in found.matrices]
    return found


def _take(line: dict[str, Any], found: Measurements, path: Path, number: int) -> None:
    if line["schema"] != SCHEMA_VERSION:
        raise ProfileError(f"{path} has schema {line['schema']}: expected {SCHEMA_VERSION}; remove the file")
    if "matrix" in line:
        entry = MatrixEntry(**line["matrix"])
        found.matrices[entry.specification] = entry
    else:
        found.records.append(_sound(Record.from_row(line["record"]), path, number))


def _sound(record: Record, path: Path, number: int) -> Record:
    """Return a Record whose figures can have been measured; a ProfileError names the first that cannot."""
    for name, value in record.impossible.items():
        raise ProfileError(
            f"{path} line {number} has {name} {value:g}: expected a finite number that is not negative, and "
            f"no time of 0; remove the line, and measure the matrix again"
        )
    return record


def _kept_path(machine: Machine) -> Path:
    return storage.home() / "measurements" / f"{machine.name}.jsonl"


def keep(machine: Machine, problem: Problem, records: Iterable[Record]) -> None:
    """Keep Records that a user measured; a StorageError says that the data folder cannot be written."""
    path = _kept_path(machine)
    with storage.exclusive(path.with_suffix(".lock"), waits=True), journal(path) as add:
        add(problem, records)


def kept(machine: Machine) -> Measurements:
    """Return all that users measured on a machine; a ProfileError says that the journal is damaged."""
    return read_journal(_kept_path(machine))


def refuse_to_lose(machine: Machine) -> None:
    """Raise a StorageError if nothing can be kept of a machine, before hours of measuring."""
    storage.ensure_writable(_kept_path(machine).parent)


def with_kept(profile: Profile) -> Profile:
    """Return a profile with the kept Records of its machine; a later Record replaces an earlier one.

    A ProfileError says that their journal is damaged.
    """
    return kept(profile.machine).into(profile)
