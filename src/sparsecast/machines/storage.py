"""The user's data folder: atomic writes, journals, and locks for one writer."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from sparsecast.errors import BusyError, StorageError
from sparsecast.system import files
from sparsecast.system.files import Place, replacement

#: Environment variable with another folder than the platform's.
HOME_VARIABLE = "SPARSECAST_HOME"


def home() -> Path:
    """Return the user's data folder, which may be missing; a StorageError if it cannot be accessed."""
    if chosen := os.environ.get(HOME_VARIABLE):
        folder = Path(chosen)
    else:
        import platformdirs  # only here: a machine whose packages are not ours to choose may lack it

        folder = platformdirs.user_data_path("sparsecast", appauthor=False)
    with storage_errors(folder):
        (folder / "profiles").exists()
    return folder


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn a failed write of `path` into a StorageError of one line."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"{path} cannot be written ({error.strerror or error}): expected a writable folder with space; "
            f"free it, or name another one in {HOME_VARIABLE}"
        ) from error


def ensure_writable(folder: Path) -> None:
    """Create `folder` and try a write in it, so that a StorageError comes before hours of measuring."""
    with storage_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(4096))
            probe.flush()


def write_atomically(path: Place, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file next to `path`, then rename it to `path` in one step.

    To an address, the file is sent when it is whole. A StorageError says that it cannot be written; the old
    file then stays.
    """
    if files.is_address(path):
        with tempfile.TemporaryDirectory() as folder:
            temporary = Path(folder) / "whole"
            write(temporary)
            files.write(path, temporary.read_bytes())
        return
    path = Path(path)
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacement(path) as temporary:
            write(temporary)


def write_table(
    path: Place,
    rows: Sequence[Mapping[str, Any]],
    kinds: Mapping[str, type],
    metadata: Mapping[bytes, bytes],
    *,
    is_packed: bool = False,
) -> None:
    """Write rows as a Parquet file, as `write_atomically`.

    `kinds` says what each column holds: `str`, `int`, `float`, `bool`, or a `list` of floats; None may stand
    in all. If the file `is_packed`, it lacks the second copy of the metadata that pyarrow stores in a schema.
    """
    import pyarrow
    import pyarrow.parquet

    types = {str: "string", int: "int64", float: "float64", bool: "bool"}
    types[list] = pyarrow.list_(pyarrow.float64())
    schema = pyarrow.schema({name: types[kind] for name, kind in kinds.items()})
    table = pyarrow.Table.from_pylist(rows, schema=schema)
    if not is_packed:
        table = table.replace_schema_metadata(metadata)

    def write(temporary: Path) -> None:
        options: dict[str, Any] = {"compression": "zstd", "write_page_checksum": True}
        with pyarrow.parquet.ParquetWriter(temporary, table.schema, **options) as writer:
            writer.write_table(table)
            if is_packed:
                writer.add_key_value_metadata(metadata)

    write_atomically(path, write)


@contextmanager
def journal(path: Path) -> Iterator[Callable[[str], None]]:
    """Open a journal for appending; yield a function that writes one line and hands it to the system.

    An incomplete last line of a killed writer is dropped. A StorageError says that a line cannot be written.
    """
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = path.open("ab+")
        stream.seek(max(0, stream.tell() - 1))
        if stream.read() not in (b"", b"\n"):
            stream.seek(0)
            stream.truncate(stream.read().rfind(b"\n") + 1)

    def append(line: str) -> None:
        with storage_errors(path):
            stream.write(line.encode() + b"\n")
            stream.flush()

    with stream:
        yield append


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock file `path` during the body; the system releases it if the process dies.

    A BusyError says that another process holds it, a StorageError that it cannot be written.
    """
    with storage_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path)
        try:
            lock.acquire(timeout=0)
        except Timeout as error:
            raise BusyError(
                f"another calibration of this machine holds {path}: expected none; wait for it or stop it"
            ) from error
    try:
        yield
    finally:
        lock.release()
