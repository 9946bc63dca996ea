"""Matrix Market files, read by SciPy's parser.

It trusts its input: a byte 0, a last line without an end or an array without rows ends the process, and 1.0D3
is read as 1.0 (decision 78). It gets a header written here, ``real``, ``complex`` or
``pattern`` and ``general``, so that it returns the stored entries and mirrors none.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.io import mminfo, mmread

from sparsecast.errors import InputError
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

_FIELDS = {"double": "real", "unsigned-integer": "integer"}
_BANNER = f"%%MatrixMarket matrix coordinate|array real|integer|complex|pattern {'|'.join(MIRRORS)}"

# Numbers of a line for its value.
_PARTS = {"real": 1, "integer": 1, "complex": 2, "pattern": 0}


@dataclass(frozen=True, slots=True)
class _Header(assembly.Header):
    """The banner, the sizes, and the number of lines before the entries."""

    layout: str
    lines: int

    @property
    def numbers(self) -> int:
        """Numbers in a line."""
        return _PARTS[self.field] + (2 if self.layout == "coordinate" else 0)


def read_matrix_market(path: Path, dtype: np.dtype[Any] | None) -> Contents:
    with failures_of(path), TextSource(path, _COMMENT_BYTES) as source:
        header = _read_header(source)
        dtype = header.value_type(path, dtype)
        shortest = 2 * header.numbers  # a digit and what ends it
        if shortest * header.stored - 1 > source.largest_text:
            most = (source.largest_text + 1) // shortest
            problem = f"claims {header.stored} entries, and a file of its size holds at most {most}"
            raise damaged(path, problem, "it is damaged or cut short: copy or download it again")
        read = header.stored * 2 * index_dtype(*header.shape).itemsize
        if header.layout == "array":
            # The whole matrix where a part of it is stored, and the places of what is not 0.
            read = header.stored * (34 + 3 * header.held.itemsize)
        header.check_memory(path, dtype, read)
        source.allow(_ENTRY_BYTES * header.stored + _SLACK_BYTES)
        parsed = _parsed(path, iter(source.block, b""), header)
    if header.layout == "array":
        matrix = from_packed(parsed.ravel().astype(dtype, copy=False), header.shape, header.mirror)
        notes = ("is a dense array: its zeros are not stored",)
        return Contents(matrix, notes, is_integer=header.field == "integer")
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
    pieces = _pieces(path, blocks, header)
    # The parser asks for 1024 bytes and takes as many as it is given; a MiB spares it a thousand calls. The
    # stubs ask for a whole file object; the parser needs `read` alone.
    body: Any = SimpleNamespace(read=lambda size=-1: next(pieces, b""))
    try:
        return mmread(body, spmatrix=False)
    except InputError:
        raise
    except (ValueError, OverflowError) as error:
        raise damaged(path, f"{str(error).rstrip('.')}{where}", _expectation(header)) from error


def _pieces(path: Path, blocks: Iterator[bytes], header: _Header) -> Iterator[bytes]:
    """Yield the input of SciPy's parser: a header written here, then the text of the file."""
    field = "real" if header.field == "integer" else header.field
    # One row for an array, whatever its shape and symmetry: the values come back as they are stored, and the
    # parser never divides by a number of rows that is 0.
    sizes = (1,) if header.layout == "array" else header.shape
    # As many lines as the file's own header has, so that line numbers in messages are the file's.
    lines = [f"%%MatrixMarket matrix {header.layout} {field} general", *["%"] * (header.lines - 2)]
    yield "\n".join((*lines, " ".join(map(str, (*sizes, header.stored))), "")).encode()
    is_first, last_line = True, b""
    for text in blocks:
        if b"\0" in text:
            raise damaged(path, "holds bytes 0 among its numbers", "it is binary or damaged: replace it")
        end = text.rfind(b"\n") + 1
        if not end and len(text) == BLOCK_BYTES:
            raise damaged(path, f"a line does not end within {BLOCK_BYTES} bytes")
        # Fortran's exponent, at which the parser would stop and take 1.0D3 for 1.0.
        text = text.replace(b"D", b"E").replace(b"d", b"e")
        last_line = text[end:] if end else last_line + text
        if is_first and (line := text[:end].lstrip()[:_LINE_BYTES].partition(b"\n")[0]):
            is_first = False
            _check_line(path, header, line)
        yield text
    # A file that was cut ends in half a line. Without an end, the parser reads beyond it.
    if last_line.strip():
        _check_line(path, header, last_line)
    yield b"\n"


def _check_line(path: Path, header: _Header, line: bytes) -> None:
    """Check the first or the last line: the parser takes 1e for 1, and passes over further numbers."""
    kinds: list[type[float]] = [int, int] if header.layout == "coordinate" else []
    kinds += [float] * _PARTS[header.field]
    try:
        # A pattern may be followed by values, which are not read.
        for kind, word in zip(kinds, line.split(), strict=header.field != "pattern"):
            kind(word)
    except ValueError as error:
        raise damaged(path, f"holds the line {shown(line.strip())}", _expectation(header)) from error


def _read_header(source: TextSource) -> _Header:
    path, lines = source.path, [source.line(_LINE_BYTES)]
    while lines[-1].startswith(b"%") or (lines[-1] and not lines[-1].strip()):
        lines.append(source.line(_LINE_BYTES))
    banner = shown(lines[0].strip())
    try:
        rows, cols, stored, layout, name, symmetry = mminfo(io.BytesIO(b"".join(lines)))
    except ValueError as error:
        problem = f"{str(error).rstrip('.')}; its header begins {banner} and ends {shown(lines[-1].strip())}"
        raise damaged(path, problem, f"expected '{_BANNER}' and a line of sizes") from error
    except OverflowError as error:
        raise too_large(path, "declares sizes beyond 64 bits", "correct them") from error
    if max(rows, cols) >= 2**53:
        raise too_large(path, f"declares {rows} rows, {cols} columns, beyond any memory", "correct them")
    field = _FIELDS.get(name, name)
    is_contradiction = (symmetry == "hermitian" and field != "complex") or (
        field == "pattern" and (layout == "array" or symmetry == "skew-symmetric")
    )
    if is_contradiction or b"vector" in lines[0].lower():
        problem = f"its first line is {banner}, which is no matrix of that field and symmetry"
        raise damaged(path, problem, f"expected '{_BANNER}'")
    if layout == "array":  # SciPy's count wraps
        mirror = MIRRORS[symmetry]
        # Where values are mirrored, those below the diagonal are stored, with it but for a negated mirror.
        stored = rows * (rows + (1 if mirror > 0 else -1)) // 2 if mirror else rows * cols
    header = _Header(field, symmetry, (rows, cols), stored, layout, len(lines))
    header.check_shape(path)
    return header


def _expectation(header: _Header) -> str:
    rows, cols = header.shape
    places = f", rows from 1 to {rows} and columns from 1 to {cols}" if header.layout == "coordinate" else ""
    lines = f"expected {header.stored} lines of {header.numbers} numbers"
    return f"{lines}{places}; correct the file or download it again"
