"""Files that are replaced as a whole: a reader sees the old file or the new one."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sparsecast.errors import InputError


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
