"""Matrix Market files: the header is read here, the numbers by SciPy's parser.

SciPy's parser is fast and trusts its input: a byte 0 or an array without rows end the process, and 1.0D3 is
read as 1.0 (tests/matrices/test_scipy_readers.py). What goes to it is therefore checked first, and its header
is written here, as ``real``, ``complex`` or ``pattern`` and as ``general``, so that it hands back what is
stored and nothing is mirrored twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.io import mmread

from sparsecast.integers import index_dtype
from sparsecast.matrices.assembly import (
    HERMITIAN,
    MIRRORS,
    Compressed,
    from_packed,
    from_triplets,
)
from sparsecast.matrices.sources import (
    BLOCK_BYTES,
    TextSource,
    check_memory,
    damaged,
    failures_of,
    shown,
    too_large,
)
from sparsecast.matrices.values import require_imaginary

_LINE_BYTES = 1 << 16
_COMMENT_BYTES = 1 << 22
# The format allows 1024 characters a line; no writer needs a quarter of it.
_ENTRY_BYTES = 256
_SLACK_BYTES = 1 << 21

_LAYOUTS = ("coordinate", "array")
_FIELDS = {"real": "real", "double": "real", "integer": "integer", "unsigned-integer": "integer"}
_FIELDS |= {"complex": "complex", "pattern": "pattern"}
_BANNER = f"%%MatrixMarket matrix coordinate|array real|integer|complex|pattern {'|'.join(MIRRORS)}"

# What a line holds of its value.
_PARTS = {"real": ("value",), "integer": ("value",), "complex": ("real", "imaginary"), "pattern": ()}


@dataclass(frozen=True, slots=True)
class Header:
    """What stands before the entries: the banner, the sizes, and the lines that all of it takes."""

    layout: str
    field: str
    symmetry: str
    shape: tuple[int, int]
    stored: int
    lines: int

    @property
    def mirror(self) -> int:
        """How entries are mirrored at the diagonal, one of MIRRORS."""
        return MIRRORS[self.symmetry]

    @property
    def numbers(self) -> int:
        """Numbers on a line of one entry."""
        return len(_PARTS[self.field]) + (2 if self.layout == "coordinate" else 0)

    @property
    def parsed(self) -> np.dtype[Any]:
        """Type of the parser's values."""
        return np.dtype(np.complex128 if self.field == "complex" else np.float64)


def read_matrix_market(path: Path, asked: np.dtype[Any] | None) -> tuple[Compressed, Header, list[str]]:
    """Read a Matrix Market file, plain or gzip.

    Parameters
    ----------
    path : Path
        A file named ``.mtx`` or ``.mtx.gz``.
    asked : numpy.dtype or None
        Type of the values returned; None for complex128 where the file is complex, and float64 otherwise.

    Returns
    -------
    tuple
        The matrix, its header, and sentences about it worth telling.

    Raises
    ------
    MatrixFileError
        If the file is damaged.
    MatrixSizeError
        If the matrix does not fit in memory; nothing large was allocated then.
    InputError
        If a real type is asked for and the file is complex.
    """
    with failures_of(path), TextSource(path, _COMMENT_BYTES) as source:
        header = _read_header(source)
        dtype = header.parsed if asked is None else asked
        require_imaginary(header.parsed, dtype, str(path))
        _check_sizes(source, header, max(dtype.itemsize, header.parsed.itemsize))
        source.allow(_ENTRY_BYTES * header.stored + _SLACK_BYTES)
        # The stubs ask for a whole file object; the parser needs `read` alone.
        body: Any = _Body(source, header)
        try:
            parsed: Any = mmread(body, spmatrix=False)
        except (ValueError, OverflowError) as error:
            if body.refusal is None:
                raise damaged(path, str(error).rstrip("."), _expectation(header)) from error
        if body.refusal is not None:
            raise body.refusal
    notes = []
    if header.layout == "array":
        matrix = from_packed(parsed.ravel().astype(dtype, copy=False), header.shape, header.mirror)
        notes.append("is a dense array: its zeros are not stored")
        return matrix, header, notes
    (rows, cols), values = parsed.coords, parsed.data.astype(dtype, copy=False)
    del parsed
    if header.mirror == -1 and bool(np.any(values[rows == cols] != 0)):
        notes.append("is called skew-symmetric and holds a diagonal that is not 0, kept as it is")
    if header.mirror == HERMITIAN and bool(np.any(values[rows == cols].imag != 0)):
        notes.append("is called hermitian and holds a diagonal that is not real, kept as it is")
    return from_triplets(rows, cols, values, header.shape, header.mirror), header, notes


def _read_header(source: TextSource) -> Header:
    banner = source.line(_LINE_BYTES)
    layout, field, symmetry = _read_banner(source.path, banner)
    lines = 1
    while True:
        line = source.line(_LINE_BYTES)
        lines += 1
        if not line:
            raise damaged(source.path, "ends before the line with its sizes")
        if line.strip() and not line.startswith(b"%"):
            break
    expected = 3 if layout == "coordinate" else 2
    names = ("rows", "columns", "entries")[:expected]
    words = line.split()
    if len(words) != expected:
        problem = f"line {lines} is {shown(line.strip())}, expected {expected} numbers: {', '.join(names)}"
        raise damaged(source.path, problem, "correct the line")
    sizes = [_size(source.path, name, word) for name, word in zip(names, words, strict=True)]
    shape = (sizes[0], sizes[1])
    if symmetry != "general" and shape[0] != shape[1]:
        problem = f"is called {symmetry} and has {shape[0]} rows and {shape[1]} columns"
        raise damaged(source.path, problem, "correct the sizes or call it general")
    stored = sizes[2] if layout == "coordinate" else _packed_length(shape, MIRRORS[symmetry])
    if stored and not min(shape):
        raise damaged(
            source.path, f"claims {stored} entries in a matrix of {shape[0]} rows, {shape[1]} columns"
        )
    return Header(layout, field, symmetry, shape, stored, lines)


def _read_banner(path: Path, banner: bytes) -> tuple[str, str, str]:
    if not banner.strip():
        raise damaged(
            path, "is empty" if not banner else "begins with an empty line", f"expected '{_BANNER}'"
        )
    words = [word.decode("ascii", errors="replace").lower() for word in banner.split()]
    if words[0] != "%%matrixmarket" or len(words) != 5 or words[1] != "matrix":
        raise damaged(path, f"its first line is {shown(banner.strip())}", f"expected '{_BANNER}'")
    layout, field, symmetry = words[2:]
    remedy = f"expected '{_BANNER}'"
    if layout not in _LAYOUTS or field not in _FIELDS or symmetry not in MIRRORS:
        raise damaged(path, f"its first line is {shown(banner.strip())}", remedy)
    if symmetry == "hermitian" and field != "complex":
        problem = f"symmetry 'hermitian' is that of complex matrices, and its field is {shown(field)}"
        raise damaged(path, problem, "call it symmetric")
    if field == "pattern" and (layout == "array" or symmetry == "skew-symmetric"):
        raise damaged(
            path, f"a pattern cannot be {layout} {symmetry}: it has no values", "correct the first line"
        )
    return layout, _FIELDS[field], symmetry


def _size(path: Path, name: str, word: bytes) -> int:
    if not word.removeprefix(b"-").isdigit() or word.startswith(b"-"):
        raise damaged(
            path, f"the number of {name} is {shown(word)}, expected a whole number from 0", "correct it"
        )
    if len(word) > 19 or int(word) >= 2**63:
        raise too_large(path, f"the number of {name} is {shown(word)}, beyond 64-bit integers", "correct it")
    return int(word)


def _packed_length(shape: tuple[int, int], mirror: int) -> int:
    rows, cols = shape
    if mirror == 0:
        return rows * cols
    return rows * (rows - 1) // 2 if mirror < 0 else rows * (rows + 1) // 2


def _check_sizes(source: TextSource, header: Header, value_bytes: int) -> None:
    """Refuse more entries than the file can hold or the memory can take."""
    shortest = 2 * header.numbers  # a digit and what ends it
    if shortest * header.stored - 1 > source.largest_text:
        most = (source.largest_text + 1) // shortest
        problem = f"claims {header.stored} entries, and a file of its size holds at most {most}"
        raise damaged(source.path, problem, "it is damaged or cut short: " + "copy or download it again")
    full = header.stored * (2 if header.mirror else 1)
    read_index = index_dtype(*header.shape).itemsize
    built_index = index_dtype(*header.shape, full).itemsize
    triplet = value_bytes + (0 if header.layout == "array" else 2 * read_index)
    entries = header.stored * triplet + full * (value_bytes + built_index)
    needed = entries + 2 * built_index * (header.shape[0] + 1)
    what = f"a matrix of {header.shape[0]} rows, {header.shape[1]} columns and {header.stored} stored entries"
    check_memory(source.path, needed, what)


def _expectation(header: Header) -> str:
    rows, cols = header.shape
    if header.layout == "array":
        numbers = "two numbers" if header.field == "complex" else "one number"
        return f"expected {header.stored} lines of {numbers}; correct the file or download it again"
    line = " ".join(("row", "column", *_PARTS[header.field]))
    return (
        f"expected {header.stored} lines '{line}' with rows from 1 to {rows} and columns from 1 to {cols}: "
        "correct the file or download it again"
    )


class _Body:
    """What SciPy's parser reads: a header written here, then the checked text of the file."""

    def __init__(self, source: TextSource, header: Header) -> None:
        self._source = source
        self._header = header
        self._first = True
        self._last_line = b""
        self._started = False
        self.refusal: Exception | None = None

    def read(self, size: int = -1) -> bytes:
        """Return the next piece, nothing at the end.

        The parser asks for 1024 bytes and takes as many as it is given; a MiB spares it a thousand calls.
        """
        try:
            return self._next()
        except Exception as error:
            # Kept, because the parser may replace it by an error of its own.
            self.refusal = error
            raise

    def _next(self) -> bytes:
        if not self._started:
            self._started = True
            return self._written_header()
        text = self._source.block()
        if not text:
            return self._end()
        if b"\0" in text:
            raise damaged(
                self._source.path, "holds bytes 0 among its numbers", "it is binary or damaged: replace it"
            )
        if b"\n" not in text and len(text) == BLOCK_BYTES:
            raise damaged(self._source.path, f"a line does not end within {BLOCK_BYTES} bytes")
        if b"\r" in text:
            text = text.replace(b"\r", b"")
        # Fortran's exponent, at which the parser would stop and take 1.0D3 for 1.0.
        if b"D" in text or b"d" in text:
            text = text.replace(b"D", b"E").replace(b"d", b"e")
        if self._first:
            self._check_first_line(text)
        end = text.rfind(b"\n") + 1
        self._last_line = text[end:] if end else self._last_line + text
        return text or b"\n"

    def _written_header(self) -> bytes:
        header = self._header
        rows, cols = header.shape
        field = "real" if header.field == "integer" else header.field
        # As many lines as the file's own header has, so that line numbers in messages are the file's.
        comments = "%\n" * (header.lines - 2)
        if header.layout == "array":
            # One row, whatever the shape and the symmetry: the entries come back as they are stored, and the
            # parser never divides by a number of rows that is 0.
            return f"%%MatrixMarket matrix array {field} general\n{comments}1 {header.stored}\n".encode()
        banner = f"%%MatrixMarket matrix coordinate {field} general\n"
        return f"{banner}{comments}{rows} {cols} {header.stored}\n".encode()

    def _check_first_line(self, text: bytes) -> None:
        line = text.lstrip()[:_LINE_BYTES].partition(b"\n")
        if line[1]:
            self._first = False
            self._check_line(line[0])

    def _end(self) -> bytes:
        if not self._last_line.strip():
            last, self._last_line = self._last_line, b""
            return b"\n" if last else b""
        # A file that was cut ends in half a line, which the parser may take for a whole one, or fall over.
        self._check_line(self._last_line)
        self._last_line = b""
        return b"\n"

    def _check_line(self, line: bytes) -> None:
        """Look closely at one line, where the parser stops at what it does not understand."""
        header, words = self._header, line.split()
        # A pattern may be followed by values, which are not read.
        matches = len(words) == header.numbers or (header.field == "pattern" and len(words) > 2)
        indices = words[: header.numbers - len(_PARTS[header.field])]
        values = words[len(indices) : header.numbers]
        if not (
            matches and all(word.lstrip(b"+-").isdigit() for word in indices) and all(map(_is_number, values))
        ):
            raise damaged(self._source.path, f"holds the line {shown(line.strip())}", _expectation(header))


def _is_number(word: bytes) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
