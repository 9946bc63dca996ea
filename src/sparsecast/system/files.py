"""Files that are replaced as a whole: a reader sees the old file or the new one."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
