"""Journals: each measurement is written at once, in one line, so that a killed run loses nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sparsecast.errors import ProfileError
from sparsecast.machines import earlier_profiles, storage
from sparsecast.machines.profile import MatrixEntry, Profile
from sparsecast.matrices.problem import Problem
from sparsecast.records import SCHEMA_VERSION, Record


def entry_of(problem: Problem) -> MatrixEntry:
    """Return the line of a table of matrices that stands for a problem."""
    return MatrixEntry(problem.specification, problem.name, problem.structure)


@dataclass
class Measurements:
    """Records, and the matrices that they name.

    Attributes
    ----------
    records : list of Record
    matrices : dict of str to MatrixEntry
        By specification.
    """

    records: list[Record] = field(default_factory=list)
    matrices: dict[str, MatrixEntry] = field(default_factory=dict)

    def add(self, problem: Problem, records: Iterable[Record]) -> None:
        """Add the Records of a problem."""
        self.matrices[problem.specification] = entry_of(problem)
        self.records += records

    def into(self, profile: Profile) -> Profile:
        """Return the profile with these measurements; a new Record replaces the old one of the same thing."""
        return profile.with_records(self.records, self.matrices.values())


class JournalWriter:
    """Appends to an open journal; `journal` gives one."""

    def __init__(self, append: Any, known: Iterable[str]) -> None:
        self._append, self._known = append, set(known)

    def add(self, problem: Problem, records: Iterable[Record]) -> None:
        """Write the Records of a problem, and first the problem if it was not written yet.

        Raises
        ------
        StorageError
            If a line cannot be written.
        """
        if problem.specification not in self._known:
            self._append(json.dumps({"schema": SCHEMA_VERSION, "matrix": entry_of(problem).to_dict()}))
            self._known.add(problem.specification)
        for record in records:
            self._append(json.dumps({"schema": SCHEMA_VERSION, "record": record.to_row()}))


@contextmanager
def journal(path: Path, known: Iterable[str] = ()) -> Iterator[JournalWriter]:
    """Open a journal for appending.

    Parameters
    ----------
    path : Path
    known : iterable of str
        Specifications of the matrices that it already holds.

    Raises
    ------
    StorageError
        If it cannot be written.
    """
    with storage.journal(path) as append:
        yield JournalWriter(append, known)


def read_journal(path: Path) -> Measurements:
    """Return what a journal holds; nothing if it does not exist. A last line that was cut short is ignored.

    Raises
    ------
    ProfileError
        If another line is damaged, or of a schema that is not known here.
    """
    found = Measurements()
    if not path.exists():
        return found
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    for number, line in enumerate(lines, 1):
        try:
            _take(json.loads(line), found)
        except _SchemaError as error:  # also in the last line: it is whole
            raise ProfileError(
                f"{path} has schema {error}: expected {SCHEMA_VERSION}; remove the file"
            ) from error
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            if number == len(lines):
                break
            raise ProfileError(
                f"{path} line {number} is damaged: expected a record; remove the file"
            ) from error
    found.records = [record for record in found.records if record.matrix in found.matrices]
    return found


class _SchemaError(Exception):
    """A line that another Sparsecast wrote."""


def _take(line: dict[str, Any], found: Measurements) -> None:
    if line["schema"] == earlier_profiles.SCHEMA_VERSION:
        entry = MatrixEntry(**earlier_profiles.matrix_entry(line))
        found.records.append(Record.from_row(earlier_profiles.record_row(line)))
        found.matrices[entry.specification] = entry
    elif line["schema"] != SCHEMA_VERSION:
        raise _SchemaError(line["schema"])
    elif "matrix" in line:
        entry = MatrixEntry(**line["matrix"])
        found.matrices[entry.specification] = entry
    else:
        found.records.append(Record.from_row(line["record"]))
