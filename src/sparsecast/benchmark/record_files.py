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
from sparsecast.machines.storage import write_atomically
from sparsecast.records import SCHEMA_VERSION, Record
from sparsecast.results.measurement import MERGED
from sparsecast.system import addresses
from sparsecast.system.addresses import Place, shown
from sparsecast.system.tabular import Table, Tabular
from sparsecast.system.texts import counted

if TYPE_CHECKING:
    import pyarrow

_MERGED_KEY = b"sparsecast_merged"

#: Columns of a merged file that are no numbers with a point.
_TEXTS = (
    *("machine", "host", "matrix_name", "matrix", "suite", "regime", "measured_at", "version"),
    *("format", "kernel", "device", "dtype", "parameters", "energy_source", "references_s"),
)
_COUNTS = (
    *("schema", "index_bits", "threads", "vectors", "nnz", "stored_bytes", "traffic_bytes"),
    "kernel_version",
)


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


@dataclass
class MergedRecords(Tabular):
    """Records of several files.

    Attributes
    ----------
    machines : dict of str to Machine
        By name; those that some file describes.
    files, repeated : int
        Files that were read, and Records in them that others have, too.
    notes : list of str
        What of the files does not count, and why.
    path : Path or str, optional
        The file that was written, or its address.
    """

    records: list[MergedRecord] = field(default_factory=list)
    machines: dict[str, Machine] = field(default_factory=dict)
    files: int = 0
    repeated: int = 0
    notes: list[str] = field(default_factory=list)
    path: Place = ""

    @classmethod
    def of(cls, places: Iterable[Place]) -> MergedRecords:
        """Return the Records of files and of all files in folders, each once.

        Raises
        ------
        InputError
            If nothing is there or it cannot be read, if one name stands for two machines, or if there are no
            Records.
        ProfileError
            If a file is damaged.
        """
        found = cls()
        places = list(places)
        for place in places:
            try:
                files = addresses.files_in(place, (".parquet", ".jsonl"))
            except FileNotFoundError as error:
                raise InputError(
                    f"{shown(place)} does not exist: expected a folder, a profile, a journal or a "
                    f"merged file; check the path"
                ) from error
            for file in files:
                found._add(file, is_named=str(file) == str(place))
        if not found.records:
            why = f" ({'; '.join(found.notes)})" if found.notes else ""
            raise InputError(
                f"no records in {', '.join(map(shown, places))}{why}: expected profiles, journals or merged "
                f"files; name others"
            )
        by_key = {merged.key: merged for merged in found.records}
        found.repeated = len(found.records) - len(by_key)
        found.records = [by_key[key] for key in sorted(by_key)]
        return found

    @property
    def rows(self) -> list[dict[str, Any]]:
        """For each machine and host the number of matrices and of Records."""
        matrices: dict[tuple[str, str | None], list[str]] = {}
        for merged in self.records:
            matrices.setdefault((merged.machine, merged.host), []).append(merged.record.matrix)
        return [
            {"machine": machine, "host": host, "matrices": len(set(names)), "records": len(names)}
            for (machine, host), names in matrices.items()
        ]

    def table(self) -> Table:
        """Return a row for each machine and host."""
        records, files = counted(len(self.records), "record"), counted(self.files, "file")
        below = f"{counted(self.repeated, 'record')} that several files have stand in it once"
        title = f"{records} of {files} in {shown(self.path)}"
        return Table(title, MERGED, self.rows, (below,) if self.repeated else ())

    def _add(self, file: Place, is_named: bool) -> None:
        self.files += 1
        if not str(file).partition("?")[0].endswith(".parquet"):
            self._add_journal(file)
            return
        expected = "a Parquet file that calibrate or merge wrote; name another, or move it away"
        table = read_table(file, "a file of records", expected)
        if _MERGED_KEY in (table.schema.metadata or {}):
            self._add_merged(file, table)
        elif Profile.is_stored(table):
            profile = Profile.of_table(table, file)
            names = {key: entry.name for key, entry in profile.matrices.items()}
            self._add_machine(profile.machine, file)
            self.records += [MergedRecord(r, profile.name, None, names[r.matrix]) for r in profile.records]
        elif is_named:
            raise ProfileError(f"{shown(file)} is Parquet without records: expected {expected}")
        else:
            self.files -= 1
            self.notes.append(f"{shown(file)} holds no records, and is left out")

    def _add_journal(self, file: Place) -> None:
        held = read_journal(file)
        if held.is_cut:
            self.notes.append(
                f"{shown(file)} ends in the middle of a line: what stands before it counts "
                f"({counted(len(held.records), 'record')})"
            )
        if held.left_out:
            without = counted(held.left_out, "record")
            self.notes.append(f"{shown(file)}: {without} without the line of the matrix: left out")
        if held.distributed:
            self.notes.append(f"{shown(file)}: {len(held.distributed):,} products of many ranks are left out")
        name, names = Path(str(file)).stem, held.matrices
        if held.machine is not None:
            name = held.machine.name
            self._add_machine(held.machine, file)
        self.records += [MergedRecord(r, name, held.host, names[r.matrix].name) for r in held.records]

    def _add_merged(self, file: Place, table: pyarrow.Table) -> None:
        try:
            described = json.loads(table.schema.metadata[_MERGED_KEY])
            machines = [Machine.from_dict(machine) for machine in described["machines"]]
            if described["schema"] != SCHEMA_VERSION:
                raise ValueError(f"schema {SCHEMA_VERSION}: it has {described['schema']}")
            self.records += [
                MergedRecord(Record.from_row(row), row["machine"], row["host"], row["matrix_name"])
                for row in table.to_pylist()
            ]
        except (KeyError, TypeError, ValueError, msgspec.ValidationError) as error:
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
        import pyarrow
        import pyarrow.parquet

        rows = [
            {
                "schema": SCHEMA_VERSION,
                "machine": merged.machine,
                "host": merged.host,
                "matrix_name": merged.matrix_name,
                **merged.record.to_row(),
            }
            for merged in self.records
        ]
        kinds: dict[str, Any] = dict.fromkeys(rows[0], pyarrow.float64())
        kinds |= dict.fromkeys(_TEXTS, pyarrow.string()) | dict.fromkeys(_COUNTS, pyarrow.int64())
        kinds |= {"samples_s": pyarrow.list_(pyarrow.float64()), "waited_for_cores": pyarrow.bool_()}
        machines = [machine.to_dict() for machine in self.machines.values()]
        described = json.dumps({"schema": SCHEMA_VERSION, "machines": machines})
        schema = pyarrow.schema(list(kinds.items()), metadata={_MERGED_KEY: described})
        table = pyarrow.Table.from_pylist(rows, schema=schema)
        options: dict[str, Any] = {"compression": "zstd", "write_page_checksum": True}
        write_atomically(place, lambda path: pyarrow.parquet.write_table(table, path, **options))
        self.path = place


def _described(machine: Machine) -> dict[str, Any]:
    """Return all of a description that a name stands for: nodes of one kind differ in memory."""
    gpu = machine.gpu and replace(machine.gpu, memory_bytes=0)
    return replace(machine, memory_bytes=0, gpu=gpu).to_dict()
