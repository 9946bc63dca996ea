"""Records of many files: profiles, journals and merged files, of one machine or several."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from sparsecast.benchmark.journal import read_journal
from sparsecast.errors import InputError, ProfileError
from sparsecast.machines.machine import Machine
from sparsecast.machines.profile import Profile, read_table
from sparsecast.machines.storage import write_table
from sparsecast.records import ROW_KINDS, SCHEMA_VERSION, Record
from sparsecast.results.measurement import MERGED
from sparsecast.system.addresses import Place, files_in, shown
from sparsecast.system.tabular import Table, Tabular, grouped
from sparsecast.system.texts import counted

if TYPE_CHECKING:
    import pyarrow

_MERGED_KEY = b"sparsecast_merged"

#: Columns of a merged file before those of the Record.
_NAMES: dict[str, type] = {"schema": int, "machine": str, "host": str, "matrix_name": str}
_NamesOfRow = tuple[str, str | None, str]


@dataclass(frozen=True, slots=True)
class MergedRecord:
    """A Record with the name of its machine, that of its node, None if unknown, and that of its matrix."""

    record: Record
    machine: str
    host: str | None
    matrix_name: str

    @property
    def key(self) -> tuple[Any, ...]:
        """What two copies of one measurement share, and no two measurements; it orders a merged file."""
        record, host = self.record, self.host or ""
        candidate = json.dumps(record.candidate.to_dict(), sort_keys=True)
        rest = record.regime, str(record.kernel_version), record.samples_s
        return self.machine, record.matrix, record.measured_at, host, record.suite, candidate, *rest

    def to_row(self) -> dict[str, Any]:
        """Return the row of a merged file."""
        names = {"machine": self.machine, "host": self.host, "matrix_name": self.matrix_name}
        return {"schema": SCHEMA_VERSION, **names, **self.record.to_row()}


@dataclass
class MergedRecords(Tabular):
    """Records of several files."""

    records: list[MergedRecord] = field(default_factory=list)
    machines: dict[str, Machine] = field(default_factory=dict)  # by name; those that some file describes
    files: int = 0  # that were read
    repeated: int = 0  # Records that several files have
    notes: list[str] = field(default_factory=list)  # what of the files does not count, and why
    path: Place = ""  # that was written

    @classmethod
    def of(cls, places: Iterable[Place]) -> MergedRecords:
        """Return the Records of files and of all files in folders, each once.

        An InputError says that nothing is there, or that it cannot be read, that one name stands for two
        machines, or that there are no Records; a ProfileError that a file is damaged.
        """
        merged, places = cls(), list(places)
        for place in places:
            for file in files_in(place, (".parquet", ".jsonl")):
                merged.files += 1
                if str(file).partition("?")[0].endswith(".parquet"):
                    merged._add_table(file, is_named=str(file) == str(place))
                else:
                    merged._add_journal(file)
        if not merged.records:
            why = f" ({'; '.join(merged.notes)})" if merged.notes else ""
            raise InputError(
                f"no records in {', '.join(map(shown, places))}{why}: expected profiles, journals or merged "
                f"files; name others"
            )
        by_key = {each.key: each for each in merged.records}
        merged.repeated = len(merged.records) - len(by_key)
        merged.records = [by_key[key] for key in sorted(by_key)]
        return merged

    @property
    def rows(self) -> list[dict[str, Any]]:
        """For each machine and host the number of matrices and of Records."""
        of_hosts = grouped(self.records, lambda merged: (merged.machine, merged.host))
        matrices = {host: {merged.record.matrix for merged in own} for host, own in of_hosts.items()}
        return [
            {"machine": machine, "host": host, "matrices": len(matrices[machine, host]), "records": len(own)}
            for (machine, host), own in of_hosts.items()
        ]

    def table(self) -> Table:
        """Return a row for each machine and host."""
        records, files = counted(len(self.records), "record"), counted(self.files, "file")
        below = f"{counted(self.repeated, 'record')} that several files have stand in it once"
        title = f"{records} of {files} in {shown(self.path)}"
        return Table(title, MERGED, self.rows, (below,) if self.repeated else ())

    def _add_table(self, file: Place, is_named: bool) -> None:
        expected = "a Parquet file that calibrate or merge wrote; name another, or move it away"
        table = read_table(file, "a file of records", expected)
        if _MERGED_KEY in (table.schema.metadata or {}):
            self._add_merged(file, table)
        elif Profile.is_stored(table):
            profile = Profile.of_table(table, file)
            self._add_machine(profile.machine, file)
            names = {key: entry.name for key, entry in profile.matrices.items()}
            self.records += [MergedRecord(r, profile.name, None, names[r.matrix]) for r in profile.records]
        elif is_named:
            raise ProfileError(f"{shown(file)} is Parquet without records: expected {expected}")
        else:
            self.files -= 1
            self.notes.append(f"{shown(file)} holds no records, and is left out")

    def _add_journal(self, file: Place) -> None:
        journal, name = read_journal(file), Path(str(file)).stem
        if journal.is_cut:
            count = counted(len(journal.records), "record")
            self.notes.append(
                f"{shown(file)} ends in the middle of a line: what stands before it counts ({count})"
            )
        if journal.left_out:
            without = counted(journal.left_out, "record")
            self.notes.append(f"{shown(file)}: {without} without the line of the matrix: left out")
        if journal.distributed:
            count = f"{len(journal.distributed):,}"
            self.notes.append(f"{shown(file)}: {count} products of many ranks are left out")
        if journal.machine is not None:
            name = journal.machine.name
            self._add_machine(journal.machine, file)
        names = {key: entry.name for key, entry in journal.matrices.items()}
        self.records += [MergedRecord(r, name, journal.host, names[r.matrix]) for r in journal.records]

    def _add_merged(self, file: Place, table: pyarrow.Table) -> None:
        try:
            described = json.loads(table.schema.metadata[_MERGED_KEY])
            machines = [Machine.from_dict(machine) for machine in described["machines"]]
            if described["schema"] != SCHEMA_VERSION:
                raise ValueError(f"schema {SCHEMA_VERSION}: it has {described['schema']}")
            for row in table.to_pylist():
                names = row["machine"], row["host"], row["matrix_name"]
                self.records.append(MergedRecord(Record.from_row(row), *msgspec.convert(names, _NamesOfRow)))
        except (KeyError, TypeError, ValueError, msgspec.DecodeError) as error:
            raise ProfileError(
                f"{shown(file)} lacks {error}: expected what merge wrote; merge again"
            ) from error
        for machine in machines:
            self._add_machine(machine, file)

    def _add_machine(self, machine: Machine, file: Place) -> None:
        known = self.machines.setdefault(machine.name, machine)
        if _described(known) != _described(machine):
            raise InputError(
                f"{machine.name} in {shown(file)} is another machine than in the files before: expected one "
                f"machine of a name; give one of them another name, or merge them apart"
            )

    def write(self, place: Place) -> None:
        """Write a Parquet file with a row for each Record; a StorageError if it cannot be written."""
        rows = [merged.to_row() for merged in self.records]
        machines = [machine.to_dict() for machine in self.machines.values()]
        described = json.dumps({"schema": SCHEMA_VERSION, "machines": machines})
        write_table(place, rows, _NAMES | ROW_KINDS, {_MERGED_KEY: described.encode()})
        self.path = place


def _described(machine: Machine) -> dict[str, Any]:
    """Return all of a description that a name stands for: nodes of one kind differ in memory."""
    gpu = machine.gpu and replace(machine.gpu, memory_bytes=0)
    return replace(machine, memory_bytes=0, gpu=gpu).to_dict()
