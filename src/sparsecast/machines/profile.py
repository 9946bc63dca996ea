"""Profiles: one Parquet file a machine, with its description and every Record and Bandwidth made on it."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparsecast.errors import ProfileError, UnknownNameError
from sparsecast.machines import machine as machines
from sparsecast.machines.machine import Machine
from sparsecast.machines.storage import home, write_atomically
from sparsecast.records import SCHEMA_VERSION, Bandwidth, Record

if TYPE_CHECKING:
    import pyarrow

SUFFIX = ".parquet"

#: Machines that everybody shall be able to ask about; a profile is shipped once Records of one were made.
WANTED = ("nvidia-h200",)

_SHIPPED = Path(__file__).parent / "profiles"
_SCHEMA_KEY, _MACHINE_KEY = b"sparsecast_schema", b"sparsecast_machine"
#: Absent where no stream was measured: so a profile of before there were any is read like one of today.
_STREAMS_KEY = b"sparsecast_streams"


@dataclass(frozen=True)
class Profile:
    """Everything learned about one machine.

    Attributes
    ----------
    machine : Machine
    records : tuple of Record
    bandwidths : tuple of Bandwidth
        Empty where none was measured.
    """

    machine: Machine
    records: tuple[Record, ...]
    bandwidths: tuple[Bandwidth, ...] = ()

    @property
    def name(self) -> str:
        """Name of the machine."""
        return self.machine.name

    def select(self, *, suite: str | None = None, **candidate: Any) -> list[Record]:
        """Return the Records of a suite whose Candidates have the given fields."""
        return [
            record
            for record in self.records
            if (suite is None or record.suite == suite)
            and all(getattr(record.candidate, key) == value for key, value in candidate.items())
        ]

    def with_records(self, records: Iterable[Record]) -> Profile:
        """Return a Profile with these Records added; a new one replaces the old one of the same thing."""
        merged = {_identity(record): record for record in (*self.records, *records)}
        return dataclasses.replace(self, records=tuple(merged.values()))

    def with_bandwidths(self, bandwidths: Iterable[Bandwidth]) -> Profile:
        """Return a Profile with these Bandwidths added; a new one replaces the old one of the same thing.

        The same are those of one kind, device, number of threads and number of bytes.
        """
        merged = {(s.kind, s.device, s.threads, s.bytes): s for s in (*self.bandwidths, *bandwidths)}
        return dataclasses.replace(self, bandwidths=tuple(merged.values()))

    def save(self, path: Path | None = None) -> Path:
        """Write the profile atomically and return where: `path`, or its place in the user's data folder.

        Raises
        ------
        StorageError
            If the file cannot be written.
        """
        import pyarrow.parquet

        target = path or user_path(self.name)
        table = pyarrow.Table.from_pylist([record.to_row() for record in self.records])
        metadata = {
            _SCHEMA_KEY: str(SCHEMA_VERSION).encode(),
            _MACHINE_KEY: json.dumps(self.machine.to_dict()).encode(),
        }
        if self.bandwidths:
            metadata[_STREAMS_KEY] = json.dumps([dataclasses.asdict(s) for s in self.bandwidths]).encode()
        table = table.replace_schema_metadata(metadata)
        write_atomically(
            target,
            lambda temporary: pyarrow.parquet.write_table(table, temporary, write_page_checksum=True),
        )
        return target

    @classmethod
    def load(cls, path: Path) -> Profile:
        """Read a profile.

        Raises
        ------
        ProfileError
            If the file is missing, damaged, no profile, or of another schema version.
        """
        table = _read_table(path)
        metadata = table.schema.metadata or {}
        if _SCHEMA_KEY not in metadata or _MACHINE_KEY not in metadata:
            raise ProfileError(
                f"{path} is Parquet but no profile: expected one that calibrate wrote; name another"
            )
        version = metadata[_SCHEMA_KEY].decode()
        if version != str(SCHEMA_VERSION):
            raise ProfileError(
                f"{path} has schema version {version}: expected {SCHEMA_VERSION}; "
                f"remove the file and calibrate the machine again"
            )
        try:
            machine = Machine.from_dict(json.loads(metadata[_MACHINE_KEY]))
            records = tuple(Record.from_row(row) for row in table.to_pylist())
            bandwidths = tuple(Bandwidth(**row) for row in json.loads(metadata.get(_STREAMS_KEY, b"[]")))
        except (KeyError, TypeError, ValueError) as error:
            raise ProfileError(
                f"{path} lacks {error}: expected a whole profile; "
                f"remove the file and calibrate the machine again"
            ) from error
        return cls(machine, records, bandwidths)


def user_path(name: str) -> Path:
    """Return the place of a machine's profile in the user's data folder."""
    return home() / "profiles" / f"{name}{SUFFIX}"


def known_profiles() -> dict[str, Path]:
    """Return the profiles that can be named: the user's, then those shipped, by name."""
    found = {path.stem: path for path in sorted(_SHIPPED.glob(f"*{SUFFIX}"))}
    found.update({path.stem: path for path in sorted((home() / "profiles").glob(f"*{SUFFIX}"))})
    return found


def missing_profiles() -> list[str]:
    """Return the names of WANTED that no profile has."""
    return [name for name in WANTED if name not in known_profiles()]


def find_profile(wanted: str | Path | None = None, here: Machine | None = None) -> Profile:
    """Return a profile by name or path; without either, that of this machine.

    Parameters
    ----------
    wanted : str or Path, optional
    here : Machine, optional
        This machine; without it, the one without devices that is detected.

    Raises
    ------
    UnknownNameError
        If no profile has that name; the message lists those that exist.
    ProfileError
        If there is none for this machine, or the file is not usable.
    """
    if wanted is None:
        return _own_profile(here or machines.detect())
    path = Path(wanted)
    if path.suffix == SUFFIX or path.parent != Path():
        return Profile.load(path)
    known = known_profiles()
    if str(wanted) in missing_profiles():
        raise ProfileError(
            f"profile '{wanted}' is missing, not shipped yet: expected Records measured on such a machine; "
            f"run make gpu-campaign on one, or give the path of a profile"
        )
    if str(wanted) not in known:
        listed = f"known are {', '.join(known)}" if known else "there are none yet"
        raise UnknownNameError(f"profile '{wanted}' is unknown: {listed}; calibrate, or give a path")
    return Profile.load(known[str(wanted)])


def _own_profile(here: Machine) -> Profile:
    path = user_path(here.name)
    if not path.exists():
        what = "sparsecast calibrate --device cuda" if here.device else "sparsecast calibrate"
        raise ProfileError(f"no profile for this machine ({here.name}): expected {path}; run {what}")
    profile = Profile.load(path)
    if profile.name != here.name:
        raise ProfileError(
            f"{path} describes another machine ({profile.name}): expected {here.name}; "
            f"remove the file, then calibrate this machine"
        )
    return profile


def _read_table(path: Path) -> pyarrow.Table:
    import pyarrow
    import pyarrow.parquet

    try:
        with path.open("rb") as stream:  # given a path, pyarrow would read a folder as well
            # Not read_table: it imports the data sets of pyarrow, and with them pandas, for a single file.
            return pyarrow.parquet.ParquetFile(stream, page_checksum_verification=True).read()
    except FileNotFoundError as error:
        raise ProfileError(f"{path} does not exist: expected a profile; run sparsecast calibrate") from error
    except (OSError, ValueError, pyarrow.ArrowException) as error:  # a ValueError: names that are no text
        why = getattr(error, "strerror", None) or "damaged or truncated"
        raise ProfileError(
            f"{path} cannot be read as a profile ({why}): expected a Parquet file that calibrate wrote; "
            f"name another, or, if it is this machine's own, remove it and calibrate again"
        ) from error


def _identity(record: Record) -> tuple[Any, ...]:
    return record.candidate, record.matrix, record.suite, record.regime
