"""Matrix Market files: the header is read here, the numbers by SciPy's parser.

SciPy's parser is fast and trusts its input: a byte 0 or an array without rows ends the process, and 1.0D3 is
read as 1.0 (tests/matrices/test_scipy_readers.py). So the text is checked first. The parser gets a header
written here, ``real``, ``complex`` or ``pattern`` and ``general``, so that it returns the stored entries and
mirrors none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.io import mmread

from sparsecast.matrices import assembly
from sparsecast.matrices.assembly import MIRRORS, Contents, Header, from_packed
from sparsecast.matrices.sources import (
    BLOCK_BYTES,
    TextSource,
    check_file,
    damaged,
    failures_of,
    shown,
    too_large,
)
from sparsecast.system.integers import index_dtype

_LINE_BYTES = 1 << 16
_COMMENT_BYTES = 1 << 22
# The format allows 1024 characters a line; no writer needs a quarter of it.
_ENTRY_BYTES = 256
_SLACK_BYTES = 1 << 21
# Parsed at a time by one of several readers.
_PART_BYTES = 1 << 24

_LAYOUTS = ("coordinate", "array")
_FIELDS = {"real": "real", "double": "real", "integer": "integer", "unsigned-integer": "integer"}
_FIELDS |= {"complex": "complex", "pattern": "pattern"}
_BANNER = f"%%MatrixMarket matrix coordinate|array real|integer|complex|pattern {'|'.join(MIRRORS)}"

# Numbers of a line for its value.
_PARTS = {"real": ("value",), "integer": ("value",), "complex": ("real", "imaginary"), "pattern": ()}


@dataclass(frozen=True, slots=True)
class _Header(assembly.Header):
    """The banner, the sizes, and the number of lines before the entries."""

    layout: str
    lines: int

    @property
    def numbers(self) -> int:
        return len(_PARTS[self.field]) + (2 if self.layout == "coordinate" else 0)


def read_matrix_market(path: Path, dtype: np.dtype[Any] | None) -> Contents:
    with failures_of(path), TextSource(path, _COMMENT_BYTES) as source:
        header = _read_header(source)
        dtype = header.value_type(path, dtype)
        _check_sizes(source, header, dtype)
        source.allow(_ENTRY_BYTES * header.stored + _SLACK_BYTES)
        parsed = _parsed(path, iter(source.block, b""), header)
    if header.layout == "array":
        matrix = from_packed(parsed.ravel().astype(dtype, copy=False), header.shape, header.mirror)
        notes = ("is a dense array: its zeros are not stored",)
        return Contents(matrix, header.field, header.symmetry, notes)
    (rows, cols), values = parsed.coords, parsed.data.astype(dtype, copy=False)
    del parsed
    return header.contents(rows, cols, values)


class Triplets(NamedTuple):
    """Stored entries of a file; rows and columns count from 0."""

    rows: NDArray[Any]
    columns: NDArray[Any]
    values: NDArray[Any]


def is_divisible(path: Path) -> bool:
    """Tell whether a file can be read in parts: coordinates in a plain Matrix Market file."""
    check_file(path)
    return path.suffix.lower() == ".mtx" and layout_of(path) == "coordinate"


def layout_of(path: Path) -> str:
    """Return ``"coordinate"`` or ``"array"``, by the header of a plain Matrix Market file."""
    with failures_of(path), TextSource(path, _COMMENT_BYTES) as source:
        return _read_header(source).layout


def read_triplets(path: Path, part: int, parts: int, dtype: np.dtype[Any]) -> tuple[Header, Triplets]:
    """Read the entries whose lines begin in part `part` of `parts` equal parts of a divisible file.

    The caller has to compare the number of all entries with `stored` of the header.
    """
    with failures_of(path), TextSource(path, _COMMENT_BYTES) as source:
        header = _read_header(source)
        dtype, begin = header.value_type(path, dtype), source.position
    length = path.stat().st_size - begin
    first, end = begin + length * part // parts, begin + length * (part + 1) // parts
    pieces = [Triplets(*(np.empty(0, dtype=kind) for kind in (np.int64, np.int64, dtype)))]
    with failures_of(path), path.open("rb") as file:
        # The line at the first byte belongs to the part before, unless it begins there.
        file.seek(max(first - 1, begin))
        if first > begin:
            file.readline()
        while file.tell() < end:
            place = file.tell()
            text = file.read(min(_PART_BYTES, end - place))
            if not text.endswith(b"\n"):
                text += file.readline()
            lines = sum(1 for line in text.split(b"\n") if line.strip())
            blocks = (text[at : at + BLOCK_BYTES] for at in range(0, len(text), BLOCK_BYTES))
            where = f" (lines counted from byte {place:,})"
            parsed = _parsed(path, blocks, replace(header, stored=lines, lines=2), where)
            rows, columns = (numbers.astype(np.int64) for numbers in parsed.coords)
            pieces.append(Triplets(rows, columns, parsed.data.astype(dtype, copy=False)))
    return header, Triplets(*(np.concatenate(arrays) for arrays in zip(*pieces, strict=True)))


def _parsed(path: Path, blocks: Iterator[bytes], header: _Header, where: str = "") -> Any:
    """Return what SciPy's parser reads after a header: coordinates, or an array of one row."""
    # The stubs ask for a whole file object; the parser needs `read` alone.
    body: Any = _Body(path, blocks, header)
    try:
        parsed = mmread(body, spmatrix=False)
    except (ValueError, OverflowError) as error:
        if body.refusal is None:
            raise damaged(path, f"{str(error).rstrip('.')}{where}", _expectation(header)) from error
    if body.refusal is not None:
        raise body.refusal
    return parsed


def _read_header(source: TextSource) -> _Header:
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
    stored = sizes[2] if layout == "coordinate" else _packed_length(shape, MIRRORS[symmetry])
    header = _Header(field, symmetry, shape, stored, layout, lines)
    header.check_shape(source.path)
    return header


def _read_banner(path: Path, banner: bytes) -> tuple[str, str, str]:
    expected = f"expected '{_BANNER}'"
    if not banner.strip():
        raise damaged(path, "begins with an empty line" if banner else "is empty", expected)
    words = [word.decode("ascii", errors="replace").lower() for word in banner.split()]
    layout, field, symmetry = words[2:] if len(words) == 5 else ("", "", "")
    is_known = layout in _LAYOUTS and field in _FIELDS and symmetry in MIRRORS
    if not is_known or words[:2] != ["%%matrixmarket", "matrix"]:
        raise damaged(path, f"its first line is {shown(banner.strip())}", expected)
    if symmetry == "hermitian" and field != "complex":
        problem = f"symmetry 'hermitian' is that of complex matrices, and its field is {shown(field)}"
        raise damaged(path, problem, "call it symmetric")
    if field == "pattern" and (layout == "array" or symmetry == "skew-symmetric"):
        problem = f"a pattern cannot be {layout} {symmetry}: it has no values"
        raise damaged(path, problem, "correct the first line")
    return layout, _FIELDS[field], symmetry


def _size(path: Path, name: str, word: bytes) -> int:
    if not word.isdigit():
        problem = f"the number of {name} is {shown(word)}, expected a whole number from 0"
        raise damaged(path, problem, "correct it")
    if len(word) > 19 or int(word) >= 2**53:
        raise too_large(
            path, f"the number of {name} is {shown(word)}, more than any memory holds", "correct it"
        )
    return int(word)


def _packed_length(shape: tuple[int, int], mirror: int) -> int:
    rows, cols = shape
    if mirror == 0:
        return rows * cols
    return rows * (rows - 1) // 2 if mirror < 0 else rows * (rows + 1) // 2


def _check_sizes(source: TextSource, header: _Header, dtype: np.dtype[Any]) -> None:
    """Refuse more entries than the file or the memory can hold."""
    shortest = 2 * header.numbers  # a digit and what ends it
    if shortest * header.stored - 1 > source.largest_text:
        most = (source.largest_text + 1) // shortest
        problem = f"claims {header.stored} entries, and a file of its size holds at most {most}"
        raise damaged(source.path, problem, "it is damaged or cut short: copy or download it again")
    if header.layout == "array":
        # The whole matrix where a part of it is stored, and the places of what is not 0.
        read = header.stored * (34 + 3 * header.held.itemsize)
    else:
        read = header.stored * 2 * index_dtype(*header.shape).itemsize
    header.check_memory(source.path, dtype, read)


def _expectation(header: _Header) -> str:
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
    """The input of SciPy's parser: a header written here, then the checked text of the file."""

    def __init__(self, path: Path, blocks: Iterator[bytes], header: _Header) -> None:
        self._path, self._blocks, self._header = path, blocks, header
        self._pieces = self._checked_pieces()
        self.refusal: Exception | None = None

    def read(self, size: int = -1) -> bytes:
        """Return the next piece, nothing at the end.

        The parser asks for 1024 bytes and takes as many as it is given; a MiB spares it a thousand calls.
        """
        try:
            return next(self._pieces, b"")
        except Exception as error:
            # Kept, because the parser may replace it by an error of its own.
            self.refusal = error
            raise

    def _checked_pieces(self) -> Iterator[bytes]:
        yield self._written_header()
        path, is_first, last_line = self._path, True, b""
        for text in self._blocks:
            if b"\0" in text:
                problem = "holds bytes 0 among its numbers"
                raise damaged(path, problem, "it is binary or damaged: replace it")
            if b"\n" not in text and len(text) == BLOCK_BYTES:
                raise damaged(path, f"a line does not end within {BLOCK_BYTES} bytes")
            text = text.replace(b"\r", b"")
            # Fortran's exponent, at which the parser would stop and take 1.0D3 for 1.0.
            text = text.replace(b"D", b"E").replace(b"d", b"e")
            if is_first:
                line, end_of_line, _ = text.lstrip()[:_LINE_BYTES].partition(b"\n")
                if end_of_line:
                    is_first = False
                    self._check_line(line)
            end = text.rfind(b"\n") + 1
            last_line = text[end:] if end else last_line + text
            yield text or b"\n"
        # A file that was cut ends in half a line, which the parser may take for a whole one, or fall over.
        if last_line.strip():
            self._check_line(last_line)
        if last_line:
            yield b"\n"

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

    def _check_line(self, line: bytes) -> None:
        """Check one line closely, where the parser would accept half a line or fail."""
        header, words = self._header, line.split()
        values = len(_PARTS[header.field])
        # A pattern may be followed by values, which are not read.
        matches = len(words) == header.numbers or (header.field == "pattern" and len(words) > 2)
        try:
            if not matches or not all(w.lstrip(b"+-").isdigit() for w in words[: header.numbers - values]):
                raise ValueError
            for word in words[header.numbers - values : header.numbers]:
                float(word)
        except ValueError:
            problem = f"holds the line {shown(line.strip())}"
            raise damaged(self._path, problem, _expectation(header)) from None
