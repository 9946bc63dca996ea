"""Matrices of the SuiteSparse Matrix Collection: downloaded once, then read from the user's data folder.

The collection publishes no checksums of its archives. Instead, a download must be complete (its length, and
the checksum of gzip), and its SHA-256 is kept next to the matrix. A file that has changed is refused, and so
is a second download that differs from the first.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import tarfile
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from http.client import HTTPException, IncompleteRead
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

import msgspec

from sparsecast.errors import MatrixFileError, MatrixSizeError
from sparsecast.machines import storage
from sparsecast.matrices.matrix_market import layout_of
from sparsecast.matrices.sources import BLOCK_BYTES, check_file, damaged, failures_of
from sparsecast.system.progress_events import tell

#: Prefix of the name of such a matrix: ``suitesparse:GROUP/NAME``.
PREFIX = "suitesparse:"

#: Where the archives are, as GROUP/NAME.tar.gz; and the environment variable that names another place.
ADDRESS, ADDRESS_VARIABLE = "https://sparse.tamu.edu/MM", "SPARSECAST_SUITESPARSE"

#: Digits of a SHA-256 that a specification has, as those of other files.
DIGITS = 32

_KNOWN_NAME = re.compile(r"([\w+-][\w.+-]*)/([\w+-][\w.+-]*)", re.ASCII)

# Seconds without an answer.
_PATIENCE_S = 30

# Bytes of a download between two reports of progress: at 30 kB/s, two seconds.
_PIECE_BYTES = 1 << 16


class Origin(msgspec.Struct):
    """Origin of a matrix file, kept next to it: where and when it is from, and its checksum."""

    address: str
    downloaded_at: str
    matrix_sha256: str


@dataclass(frozen=True, slots=True)
class Downloaded:
    """A matrix of the collection, by its group and name there: ``HB`` and ``1138_bus``."""

    group: str
    name: str

    @classmethod
    def named(cls, text: str) -> Downloaded:
        """Return the matrix that ``suitesparse:GROUP/NAME`` names; nothing is read or downloaded."""
        match = _KNOWN_NAME.fullmatch(text.removeprefix(PREFIX))
        if match is None:
            raise damaged(text, f"expected {PREFIX}GROUP/NAME, such as {PREFIX}HB/1138_bus", "name both")
        return cls(*match.groups())

    def __str__(self) -> str:
        return f"{PREFIX}{self.group}/{self.name}"

    @property
    def path(self) -> Path:
        """The file in the user's data folder, which may be missing."""
        return storage.home() / "cache" / "suitesparse" / self.group / f"{self.name}.mtx"

    @property
    def address(self) -> str:
        base = os.environ.get(ADDRESS_VARIABLE) or ADDRESS
        return f"{base.rstrip('/')}/{quote(self.group)}/{quote(self.name)}.tar.gz"

    def kept_digest(self) -> str | None:
        """Return DIGITS of the SHA-256 of the downloaded matrix file; None where it is missing."""
        origin = self._origin()
        return origin.matrix_sha256[:DIGITS] if origin and self.path.is_file() else None

    def fetched(self) -> Path:
        """Return the matrix file, compared with its SHA-256, or downloaded if it is missing."""
        origin = self._origin()
        if origin is None or not self.path.exists():
            self._download(origin)
        elif sha256(self.path) != origin.matrix_sha256:
            raise damaged(
                self.path,
                f"differs from what was downloaded on {origin.downloaded_at}, by its SHA-256",
                "remove it: it is downloaded again, and compared with that",
            )
        return self.path

    @property
    def _origin_path(self) -> Path:
        return self.path.with_suffix(".json")

    def _origin(self) -> Origin | None:
        if not self._origin_path.exists():
            return None
        try:
            return msgspec.json.decode(self._origin_path.read_bytes(), type=Origin)
        except (UnicodeError, msgspec.DecodeError) as error:
            remedy = "remove it and the matrix beside it: both are downloaded again"
            raise damaged(self._origin_path, "does not say what was downloaded", remedy) from error

    def _download(self, before: Origin | None) -> None:
        """Download and unpack the archive, whose matrix must equal an earlier one."""
        folder = self.path.parent
        storage.ensure_writable(folder)
        with storage.storage_errors(folder), tempfile.TemporaryDirectory(dir=folder) as temporary:
            archive, matrix = Path(temporary) / "archive", Path(temporary) / self.path.name
            self._retrieve(archive)
            self._unpack(archive, matrix)
            digest = sha256(matrix)
            if before is not None and digest != before.matrix_sha256:
                problem = f"its matrix differs from the one of {before.downloaded_at}, by its SHA-256"
                remedy = f"if the collection has changed it, remove {self._origin_path} to take the new one"
                raise damaged(self, problem, remedy)
            matrix.replace(self.path)
        origin = Origin(self.address, datetime.now(UTC).isoformat(timespec="seconds"), digest)
        text = msgspec.json.format(msgspec.json.encode(origin), indent=1)
        # Last, so that a matrix without a checksum is downloaded again.
        storage.write_atomically(self._origin_path, lambda path: path.write_bytes(text))

    def _retrieve(self, archive: Path) -> None:
        # Without a second compression by the server: bytes are counted, and compared.
        request, done = Request(self.address, headers={"Accept-Encoding": "identity"}), 0
        elsewhere = "or download it elsewhere and name its .mtx file"
        with archive.open("wb") as file:  # a full disk, when it closes, is no failure of the network
            try:
                with urlopen(request, timeout=_PATIENCE_S) as answer:
                    total = int(answer.headers.get("Content-Length") or 0)
                    while piece := answer.read(_PIECE_BYTES):
                        with storage.storage_errors(archive):
                            file.write(piece)
                        done += len(piece)
                        tell(f"downloading {self.group}/{self.name}", done, total)
                    if done < total:
                        raise IncompleteRead(b"", total - done)
            except HTTPError as error:
                error.close()
                if error.code == 404:
                    problem = f"the collection has no such matrix (404 for {self.address})"
                    raise damaged(self, problem, "check GROUP and NAME at https://sparse.tamu.edu") from error
                raise damaged(
                    self, f"{self.address} answers {error.code}", f"try later, {elsewhere}"
                ) from error
            except (OSError, HTTPException, ValueError) as error:
                problem = f"{self.address} cannot be downloaded ({type(error).__name__}), and no copy is here"
                raise damaged(self, problem, f"connect to the network, {elsewhere}") from error

    def _unpack(self, archive: Path, target: Path) -> None:
        """Write the matrix file of an archive, which is read to its end, where its checksum is.

        No path is taken from the archive, and no other file.
        """
        wanted, size = f"{self.name}/{self.name}.mtx", archive.stat().st_size
        with failures_of(Path(str(self))), archive.open("rb") as raw, gzip.open(raw) as stream:
            try:
                with tarfile.open(fileobj=stream, mode="r|") as members:
                    for member in members:
                        source = members.extractfile(member) if member.isreg() else None
                        if source is None or member.name.removeprefix("./") != wanted:
                            continue
                        with target.open("wb") as file:
                            while piece := source.read(BLOCK_BYTES):
                                with storage.storage_errors(target):
                                    file.write(piece)
                                tell(f"unpacking {self.group}/{self.name}", raw.tell(), size)
            except tarfile.TarError as error:
                raise damaged(self, f"its archive is damaged ({error})", "try again later") from error
            while stream.read(BLOCK_BYTES):
                pass
        if not target.exists():
            raise damaged(self, f"its archive has no file {wanted}", "name another matrix")
        try:
            layout_of(target)
        except (MatrixFileError, MatrixSizeError) as error:
            problem = str(error).removeprefix(f"{target}: ").partition("; ")[0]
            remedy = "nothing is kept; name another matrix"
            raise damaged(self, f"the file in its archive is no matrix: {problem}", remedy) from error


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits."""
    check_file(path)
    with failures_of(path), path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def short_digest(path: Path) -> str:
    """Return the DIGITS of the SHA-256 of a file that a specification has."""
    return sha256(path)[:DIGITS]
