"""Files that are replaced as a whole: a reader sees the old file or the new one.

Files here, and at addresses of pyarrow's file systems, such as ``s3://BUCKET/KEY`` or ``gs://BUCKET/KEY``.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sparsecast.errors import InputError, SparsecastError, StorageError


@contextmanager
def replacement(path: Path) -> Iterator[Path]:
    """Yield an empty file next to `path`; at the end it replaces `path` in one step.

    After an error, the old file stays. The folder must exist.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    # Not by tempfile, whose files only the owner may read; here the umask decides.
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def unwritable(path: Path, why: str = "") -> InputError:
    """Return the error for a file that a user asks for and that cannot be written."""
    return InputError(f"{path} cannot be written{why}: expected a file in a writable folder; name another")


def write_file(path: Path, data: bytes) -> None:
    """Write a whole file that a user asks for; an InputError says that it cannot be written."""
    try:
        if path.exists() and not path.is_file():  # such as /dev/stdout
            path.write_bytes(data)
            return
        with replacement(path) as temporary:
            temporary.write_bytes(data)
    except OSError as error:
        raise unwritable(path, f" ({error.strerror or error})") from error


#: A path of this machine, or an address, which `pathlib` would spoil.
Place = str | Path


def is_address(place: Place) -> bool:
    """Tell whether a text is an address: two letters or more before ``://``."""
    return isinstance(place, str) and re.match(r"[A-Za-z][\w+.-]+://", place) is not None


def shown(place: Place) -> str:
    """Return a place, or a message that has it, without the key and the secret that an address may have.

    A secret may have a slash: after a colon, all up to the last @ is cut.
    """
    return re.sub(r"(://)(?:[^/@]*:.*|[^/@]*)@", r"\1", str(place))


@contextmanager
def _errors(place: Place, expected: str, kind: type[SparsecastError] = InputError) -> Iterator[None]:
    """Turn what a file system says of a place into an error of one line; a missing file to read stays one."""
    try:
        yield
    except (OSError, ValueError, NotImplementedError) as error:  # a ValueError: no known file system
        if isinstance(error, FileNotFoundError) and kind is not StorageError:
            raise
        why = getattr(error, "strerror", None) or " ".join(str(error).split())
        remedy = "correct the address, or the credentials for it" if is_address(place) else "name another"
        raise kind(
            f"{shown(place)} cannot be reached ({shown(why)}): expected {expected}; {remedy}"
        ) from error


def read(place: Place, kind: type[InputError] = InputError) -> bytes:
    """Return what a file holds; a FileNotFoundError without it, else an error of a kind."""
    with _errors(place, "a file that can be read", kind):
        if not is_address(place):
            return Path(place).read_bytes()
        system, path = _system(place)
        with system.open_input_stream(path) as stream:
            return bytes(stream.read())


def exists(place: Place) -> bool:
    """Tell whether something is there; an InputError says that the place cannot be reached."""
    with _errors(place, "a place that can be reached"):
        if not is_address(place):
            return Path(place).exists()
        from pyarrow import fs

        system, path = _system(place)
        return bool(system.get_file_info(path).type != fs.FileType.NotFound)


def write(place: Place, content: bytes) -> None:
    """Write a file at an address; a StorageError says that it cannot be reached."""
    with _errors(place, "a place that can be written", StorageError):
        system, path = _system(place)
        with system.open_output_stream(path) as stream:
            stream.write(content)


def files_in(place: Place, suffixes: Sequence[str]) -> list[Place]:
    """Return the place itself, if it is a file, or the files below it that end so, by name.

    An InputError says that there is nothing, or that it cannot be reached.
    """
    if not exists(place):
        expected = f"a folder or a file ({', '.join(suffixes)})"
        raise InputError(f"{shown(place)} does not exist: expected {expected}; check the path")
    with _errors(place, "a file or a folder that can be read"):
        if not is_address(place):
            folder = Path(place)
            below = (path for path in folder.rglob("*") if path.suffix in suffixes and path.is_file())
            return sorted(below) if folder.is_dir() else [folder]
        from pyarrow import fs

        system, path = _system(place)
        if system.get_file_info(path).is_file:
            return [place]
        base, *query = re.split(r"(?=\?)", str(place), maxsplit=1)
        below = system.get_file_info(fs.FileSelector(path, recursive=True))
        names = sorted(info.path for info in below if info.path.endswith(tuple(suffixes)) and info.is_file)
        return ["".join((base.rstrip("/"), name.removeprefix(path.rstrip("/")), *query)) for name in names]


def _system(place: Place) -> tuple[Any, str]:
    from pyarrow import fs

    system, path = fs.FileSystem.from_uri(str(place))
    if not path:  # S3 would list all buckets of the user, and wait for the network
        raise ValueError("a bucket is missing")
    return system, path
