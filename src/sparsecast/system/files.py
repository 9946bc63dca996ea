"""Files that are replaced whole: whoever reads one sees the old file or the new one."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacement(path: Path) -> Iterator[Path]:
    """Give an empty file beside `path` to fill; at the end it takes the place of `path` in one step.

    After an error, what stood at `path` before still stands. The folder must exist.

    Raises
    ------
    OSError
        If the file cannot be made, or moved.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    # Not by tempfile, whose files are the owner's alone: the system takes the umask off these bits.
    os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
