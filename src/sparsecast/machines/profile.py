"""Profiles: one Parquet file per machine, with its description and everything measured on it."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from sparsecast.errors import ProfileError, UnknownNameError, remedy_for
from sparsecast.features.structure import Structure
from sparsecast.machines import machine as machines
from sparsecast.machines.machine import Machine
from sparsecast.machines.storage import home, write_table
from sparsecast.records import ROW_KINDS, SCHEMA_VERSION, Bandwidth, MicroBenchmark, Record
from sparsecast.system import files
from sparsecast.system.files import Place
from sparsecast.system.tabular import Column, Columns, Table, Tabular
from sparsecast.system.texts import counted, percent

if TYPE_CHECKING:
    import pyarrow

SUFFIX = ".parquet"

#: Machines whose profiles are wanted; each is shipped once it was measured.
WANTED = ("nvidia-h200",)

_SHIPPED = Path(__file__).parent / "profiles"
_SCHEMA_KEY, _MACHINE_KEY = b"sparsecast_schema", b"sparsecast_machine"
_MATRICES_KEY, _BANDWIDTHS_KEY = b"sparsecast_matrices", b"sparsecast_bandwidths"
_MICROBENCHMARKS_KEY = b"sparsecast_microbenchmarks"
_CHECKSUM_KEY = b"sparsecast_checksum"


#: Columns of a Record in the table of a profile.
_RECORD: Columns = (
    Column("suite", "suite"),
    Column("nnz", "non-zeros"),
    *(Column(name, name, f"candidate.{name}") for name in ("format", "kernel", "device", "dtype", "threads")),
    Column("time_s", "time"),
    Column("noise", "noise", text=percent),
    Column("gflops", "GFLOP/s", text="{:.2f}".format),
    Column("energy_j", "energy"),
)


class MatrixEntry:
    """A measured matrix in a profile, without its entries.

    `specification` is the key in Records, from which the matrix is made again if possible; `name` is for
    people. A mapping as `structure`, as from `Structure.to_dict`, is read when it is first needed.
    """

    def __init__(self, specification: str, name: str, structure: Structure | Mapping[str, Any]) -> None:
        if not (isinstance(specification, str) and isinstance(name, str)):
            raise TypeError("texts as the specification and the name of a matrix")
        self.specification, self.name, self._stored = specification, name, structure

    @cached_property
    def structure(self) -> Structure:
        """The known features of the matrix; a ProfileError if they are damaged."""
        if isinstance(self._stored, Structure):
            return self._stored
        try:
            return Structure.from_dict(self._stored).checked()
        except (KeyError, TypeError, ValueError, msgspec.ValidationError) as error:
            raise ProfileError(
                f"the stored structure of {self.specification} is damaged ({error}): expected one that "
                f"calibrate wrote; remove the profile and calibrate the machine again"
            ) from error

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as plain data: the arguments of `__init__`, by name."""
        stored = self._stored.to_dict() if isinstance(self._stored, Structure) else dict(self._stored)
        return {"specification": self.specification, "name": self.name, "structure": stored}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MatrixEntry) and all(
            getattr(self, name) == getattr(other, name) for name in ("specification", "name", "structure")
        )


@dataclass(frozen=True)
class Profile(Tabular):
    """Everything measured on one machine; `matrices` has the matrices of the Records, by specification.

    `microbenchmarks` are those of several ranks, on one node or more; most profiles have none.
    """

    machine: Machine
    records: tuple[Record, ...]
    matrices: Mapping[str, MatrixEntry] = field(default_factory=dict)
    bandwidths: tuple[Bandwidth, ...] = ()
    microbenchmarks: tuple[MicroBenchmark, ...] = ()

    def table(self) -> Table:
        """Return a row for each Record."""
        matrices = counted(len(self.matrices), "matrix")
        title = f"{self.name}: {counted(len(self.records), 'record')} of {matrices}"
        names = {key: entry.name for key, entry in self.matrices.items()}
        named = Column("matrix", "matrix", lambda record: names.get(record.matrix, record.matrix))
        return Table(title, (named, *_RECORD), self.records)

    @property
    def name(self) -> str:
        return self.machine.name

    def structure(self, record: Record) -> Structure:
        """Return the features of the matrix of a Record."""
        return self.matrices[record.matrix].structure

    def select(self, *, suite: str | None = None, vectors: int | None = 1, **candidate: Any) -> list[Record]:
        """Return the Records of a suite whose Candidates have the given fields.

        They are of one vector by default, and of any number with None.
        """
        wanted = (candidate if vectors is None else {"vectors": vectors, **candidate}).items()
        return [
            record
            for record in self.records
            if suite in (None, record.suite) and all(getattr(record.candidate, k) == v for k, v in wanted)
        ]

    def with_records(self, records: Iterable[Record], matrices: Iterable[MatrixEntry]) -> Profile:
        """Return a Profile with these Records added; a new one replaces an old one of the same identity.

        `matrices` has at least the matrices that the profile lacks.
        """
        merged = {record.identity: record for record in (*self.records, *records)}
        entries = {**self.matrices, **{entry.specification: entry for entry in matrices}}
        return dataclasses.replace(self, records=tuple(merged.values()), matrices=entries)

    def with_bandwidths(self, bandwidths: Iterable[Bandwidth]) -> Profile:
        """Return a Profile with these Bandwidths added; a new one replaces the old one of the same kind."""
        merged = {(b.kind, b.device, b.threads, b.bytes): b for b in (*self.bandwidths, *bandwidths)}
        return dataclasses.replace(self, bandwidths=tuple(merged.values()))

    def with_microbenchmarks(self, microbenchmarks: Iterable[MicroBenchmark]) -> Profile:
        """Return a Profile with these added; a new one replaces the old one of the same key."""
        every = (*self.microbenchmarks, *microbenchmarks)
        merged = {point.key: point for point in every}
        return dataclasses.replace(self, microbenchmarks=tuple(merged.values()))

    def save(self, path: Place | None = None, *, is_packed: bool = False) -> Place:
        """Write the profile as a whole and return where: `path`, or its place in the user's data folder.

        A text such as ``s3://BUCKET/KEY`` is an address of pyarrow's file systems.

        The file is a Parquet table of the Records, with a checksum in each page. The machine, the matrices,
        the bandwidths and the micro-benchmarks are JSON in its metadata, with their own checksum. If it
        `is_packed`, as a shipped profile, the matrices are compressed, and nothing is stored twice.
        """
        target = user_path(self.name) if path is None else path
        described = {
            _SCHEMA_KEY: SCHEMA_VERSION,
            _MACHINE_KEY: self.machine.to_dict(),
            _MATRICES_KEY: [entry.to_dict() for entry in self.matrices.values()],
            _BANDWIDTHS_KEY: [dataclasses.asdict(bandwidth) for bandwidth in self.bandwidths],
        }
        if self.microbenchmarks:
            described[_MICROBENCHMARKS_KEY] = [dataclasses.asdict(record) for record in self.microbenchmarks]
        stored = {key: json.dumps(value).encode() for key, value in described.items()}
        if is_packed:
            stored[_MATRICES_KEY] = zlib.compress(stored[_MATRICES_KEY], 9)
        stored[_CHECKSUM_KEY] = _checksum(stored)
        rows = [record.to_row() for record in self.records]
        write_table(target, rows, ROW_KINDS, stored, is_packed=is_packed)
        return target

    @classmethod
    def load(cls, path: Place) -> Profile:
        """Read a profile; a ProfileError if it is missing, damaged, of another schema, or no profile."""
        return cls.of_table(read_table(path), path)

    @classmethod
    def of_table(cls, table: pyarrow.Table, place: Place) -> Profile:
        """Return the profile of the table that is stored there; as `load`."""
        path = files.shown(place)
        metadata = table.schema.metadata or {}
        if not cls.is_stored(table):
            raise ProfileError(
                f"{path} is Parquet but no profile: expected one that calibrate wrote; name another"
            )
        version = metadata[_SCHEMA_KEY].decode(errors="replace")
        if version != str(SCHEMA_VERSION):
            raise ProfileError(
                f"{path} has schema version {version}: expected {SCHEMA_VERSION}; calibrate the machine again"
            )
        if metadata.get(_CHECKSUM_KEY) != _checksum(metadata):
            raise _not_whole(path, "is damaged, by the checksum of its metadata")
        try:
            rows = table.to_pylist()
            # JSON that may be compressed.
            text = metadata[_MATRICES_KEY]
            entries = json.loads(text if text[:1] in b"[{" else zlib.decompress(text))
            stored = cls(
                Machine.from_dict(json.loads(metadata[_MACHINE_KEY])),
                tuple(Record.from_row(row) for row in rows),
                {entry["specification"]: MatrixEntry(**entry) for entry in entries},
                msgspec.json.decode(metadata[_BANDWIDTHS_KEY], type=tuple[Bandwidth, ...]),
                # Absent from profiles of one process.
                msgspec.json.decode(
                    metadata.get(_MICROBENCHMARKS_KEY, b"[]"), type=tuple[MicroBenchmark, ...]
                ),
            )
        except (KeyError, TypeError, ValueError, zlib.error, msgspec.DecodeError) as error:
            raise _not_whole(path, f"lacks {error}") from error
        unknown = {record.matrix for record in stored.records} - set(stored.matrices)
        if unknown:
            raise _not_whole(path, f"lacks the matrix {min(unknown)}")
        return stored

    @staticmethod
    def is_stored(table: pyarrow.Table) -> bool:
        """Tell whether a table is that of a profile, of whatever schema."""
        return {_SCHEMA_KEY, _MACHINE_KEY} <= (table.schema.metadata or {}).keys()

    @classmethod
    def load_own(cls, path: Path, machine: Machine) -> Profile:
        """Read a machine's own profile; a ProfileError if it is another machine's."""
        profile = cls.load(path)
        if profile.name != machine.name:
            raise ProfileError(
                f"{path} describes another machine ({profile.name}): expected {machine.name}; "
                f"remove the file, then calibrate this machine"
            )
        return profile


def _checksum(metadata: Mapping[bytes, bytes]) -> bytes:
    keys = (_SCHEMA_KEY, _MACHINE_KEY, _MATRICES_KEY, _BANDWIDTHS_KEY, _MICROBENCHMARKS_KEY)
    return hashlib.sha256(b"".join(metadata.get(key, b"") for key in keys)).hexdigest().encode()


def _not_whole(path: str, why: str) -> ProfileError:
    return ProfileError(
        f"{path} {why}: expected a whole profile; remove the file and calibrate the machine again"
    )


def user_path(name: str) -> Path:
    """Return the place of a machine's profile in the user's data folder."""
    return home() / "profiles" / f"{name}{SUFFIX}"


def known_profiles() -> dict[str, Path]:
    """Return the profiles by name: those of the user, and shipped ones of other names."""
    folders = _SHIPPED, home() / "profiles"
    return {path.stem: path for folder in folders for path in sorted(folder.glob(f"*{SUFFIX}"))}


def missing_profiles() -> list[str]:
    """Return the names of WANTED without a profile."""
    return [name for name in WANTED if name not in known_profiles()]


def find_profile(wanted: str | Path | None = None, here: Machine | None = None) -> Profile:
    """Return a profile by name or path, by default that of this machine.

    `here` is this machine, by default as detected without devices.
    """
    if wanted is None:
        here = here or machines.detect()
        path = user_path(here.name)
        if not path.exists():
            on = "" if here.device == machines.PROCESSOR else f" --device {here.device}"
            raise ProfileError(
                f"no profile for this machine ({here.name}): expected {path}; run sparsecast calibrate{on}"
            )
        return Profile.load_own(path, here)
    if files.is_address(wanted):
        return Profile.load(wanted)
    path = Path(wanted)
    if path.suffix == SUFFIX or path.parent != Path():
        return Profile.load(path)
    profiles = known_profiles()
    if str(wanted) in profiles:
        return Profile.load(profiles[str(wanted)])
    if str(wanted) in missing_profiles():
        raise ProfileError(
            f"profile '{wanted}' is missing, not shipped yet: expected Records measured on such a machine; "
            f"run make gpu-campaign on one, or give the path of a profile"
        )
    if path.exists():
        return Profile.load(path)
    listed = ", ".join(profiles)
    remedy = remedy_for(str(wanted), profiles, "calibrate, or give a path")
    raise UnknownNameError(f"profile '{wanted}' is unknown: known are {listed}; {remedy}")


#: Of a profile, with the remedy.
_EXPECTED = (
    "a Parquet file that calibrate wrote; name another, or, if it is this machine's own, remove it and "
    "calibrate again"
)


def read_table(path: Place, what: str = "a profile", expected: str = _EXPECTED) -> pyarrow.Table:
    """Return the table of a Parquet file of ours; a ProfileError if it is missing or damaged."""
    import pyarrow
    import pyarrow.parquet

    try:
        content = files.read(path, ProfileError)
    except FileNotFoundError as error:
        raise ProfileError(
            f"{files.shown(path)} does not exist: expected a profile; run sparsecast calibrate"
        ) from error
    try:
        # Not pyarrow's read_table, which imports pandas for a single file, nor a file object of Python:
        # its threads may outlive the interpreter, which then aborts (apache/arrow issues 34314 and 50482).
        stream = pyarrow.BufferReader(content)
        return pyarrow.parquet.ParquetFile(stream, page_checksum_verification=True).read()
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise ProfileError(
            f"{files.shown(path)} cannot be read as {what} (damaged or truncated): expected {expected}"
        ) from error
