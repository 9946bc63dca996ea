"""Bytes of a matrix file, plain or gzip, in bounded pieces; checks of files and of memory."""

from __future__ import annotations

import contextlib
import stat
import zlib
from collections.abc import Callable, Iterator
from gzip import BadGzipFile
from pathlib import Path
from typing import Any, BinaryIO

from sparsecast.errors import MatrixFileError, MatrixSizeError, remedy_for
from sparsecast.system.memory import require_memory
from sparsecast.system.progress_events import watcher

try:
    from isal import igzip, isal_zlib
except ImportError:  # the standard library reads the same bytes, more slowly
    import gzip as igzip  # type: ignore[no-redef]
    import zlib as isal_zlib  # type: ignore[no-redef]

#: Makes an object that unpacks zlib's data in pieces.
inflater: Callable[[], Any] = isal_zlib.decompressobj

#: Bytes read at a time.
BLOCK_BYTES = 1 << 20

# Deflate codes at most 258 bytes in two bits.
_LARGEST_EXPANSION = 1032

_DEFLATE_ERRORS: tuple[Any, ...] = (zlib.error, isal_zlib.error)


def damaged(path: object, problem: str, remedy: str = "copy or download it again") -> MatrixFileError:
    """Return the error for a file that cannot be read: `problem` and `remedy` on one line."""
    return MatrixFileError(f"{path}: {problem}; {remedy}")


def too_large(path: Path, problem: str, remedy: str) -> MatrixSizeError:
    """Return the error for a matrix too large for this machine, on one line."""
    return MatrixSizeError(f"{path}: {problem}; {remedy}")


def shown(text: bytes | str) -> str:
    """Return the beginning of `text` for a one-line message."""
    decoded = text.decode("ascii", errors="replace") if isinstance(text, bytes) else text
    return repr(decoded if len(decoded) <= 80 else decoded[:80] + "...")


def check_memory(path: Path, needed_bytes: int, what: str) -> None:
    """Refuse a matrix that does not fit in the available memory, before anything is allocated."""
    require_memory(needed_bytes, f"{path}: {what}", "use a smaller matrix or a machine with more memory")


def check_file(path: Path) -> None:
    """Refuse a path that is missing, cannot be read, or is no regular file."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError as error:
        beside: list[str] = []
        with contextlib.suppress(OSError):  # no such folder, or no permission: nothing can be suggested
            beside = [sibling.name for sibling in path.parent.iterdir()]
        # All matrix files end alike, so that names must be nearer than other names.
        remedy = remedy_for(path.name, beside, "check the path", likeness=0.8)
        raise damaged(path, "there is no such file", remedy) from error
    except OSError as error:
        problem = f"cannot be read ({error.strerror})"
        raise damaged(path, problem, "check the path and its permissions") from error
    except ValueError as error:
        raise MatrixFileError(f"{str(path)!r}: cannot be a path ({error}); check it") from error
    if not stat.S_ISREG(mode):
        problem = "is a directory" if stat.S_ISDIR(mode) else "is not a regular file"
        raise damaged(path, problem, "give the path of one matrix file")


@contextlib.contextmanager
def failures_of(path: Path) -> Iterator[None]:
    """Turn errors of reading `path` into one line of the right class."""
    try:
        yield
    except EOFError as error:
        raise damaged(path, "ends in the middle of its compressed data") from error
    except _DEFLATE_ERRORS as error:
        raise damaged(path, f"its compressed data are damaged ({error})") from error
    except BadGzipFile as error:
        raise damaged(path, f"is not gzip, or damaged ({error})") from error
    except OSError as error:
        raise damaged(path, f"cannot be read ({error.strerror})", "check its permissions") from error
    except MemoryError as error:
        raise too_large(path, "does not fit in memory", "use a machine with more of it") from error


class TextSource:
    """A regular text file, plain or gzip by its suffix, with a bound on what may be read of it.

    Use it as a context manager, inside `failures_of`.
    """

    def __init__(self, path: Path, allowed_bytes: int) -> None:
        self.path = path
        compressed = path.suffix.lower() == ".gz"
        #: Bytes of text that the file can hold at most.
        self._bytes = path.stat().st_size
        self.largest_text = self._bytes * (_LARGEST_EXPANSION if compressed else 1)
        open_compressed: Callable[[BinaryIO, str], BinaryIO] = igzip.open
        self._stored = path.open("rb")
        self._file = open_compressed(self._stored, "rb") if compressed else self._stored
        self._allowed = allowed_bytes
        self.position = 0  # bytes of text read so far
        self._on_part, self._reported = watcher(), 0

    def __enter__(self) -> TextSource:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._stored.close()

    def allow(self, more_bytes: int) -> None:
        """Bound what may be read from here on to `more_bytes`."""
        self._allowed = self.position + more_bytes

    def line(self, limit: int) -> bytes:
        """Return the next line with its end, of at most `limit` bytes; nothing at the end of the file."""
        text = self._file.readline(limit + 1)
        if len(text) > limit:
            problem = f"a line begins with {shown(text)} and does not end within {limit} bytes"
            raise damaged(self.path, problem)
        return self._counted(text)

    def block(self) -> bytes:
        """Return the next BLOCK_BYTES, fewer at the end of the file, nothing after it."""
        return self._counted(self._file.read(BLOCK_BYTES))

    def _counted(self, text: bytes) -> bytes:
        self.position += len(text)
        if self._on_part is not None and (self.position - self._reported >= BLOCK_BYTES or not text):
            self._reported = self.position
            self._on_part(f"reading {self.path.name}", self._stored.tell(), self._bytes)
        if self.position > self._allowed:
            raise damaged(
                self.path,
                f"holds more than {self._allowed} bytes of text, more than the sizes it declares can need",
                "the file is damaged or made to exhaust memory: take it from another source",
            )
        return text
