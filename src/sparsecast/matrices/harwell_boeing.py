"""Rutherford-Boeing and Harwell-Boeing files: punched-card columns in fields of fixed width.

SciPy's reader takes square unsymmetric matrices of real numbers and integers only
(tests/matrices/test_scipy_readers.py). Here are also the complex, the symmetric, the Hermitian, the
skew-symmetric, the rectangular and the patterns; right-hand sides that follow the matrix are not read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sparsecast.integers import index_dtype
from sparsecast.matrices.assembly import HERMITIAN, MIRRORS, Compressed, from_triplets
from sparsecast.matrices.sources import TextSource, check_memory, damaged, failures_of, shown, too_large
from sparsecast.matrices.values import require_imaginary

_FIELDS = {"r": "real", "i": "integer", "c": "complex", "p": "pattern"}
_SYMMETRIES = {"u": "general", "r": "general", "s": "symmetric", "z": "skew-symmetric", "h": "hermitian"}

#: Suffixes that name the type of the matrix, such as ``.rua``; the file itself says it again.
SUFFIXES = (".rb", ".hb", *("." + "".join(letters) for letters in product("ripc", "usrzh", "ae")))

# Cards have 80 columns; nobody writes a thousand.
_CARD_BYTES = 1000
_HEADER_BYTES = 5 * (_CARD_BYTES + 2)
# So many cards become an array of fields at a time.
_CARDS_AT_ONCE = 20_000

_BARE_EXPONENT = re.compile(rb"(?<=[0-9.])([+-])")
_FORMAT = re.compile(r"\((?:[+-]?\d+P,?)?(\d*)([IEDFG])(\d+)(?:\.\d+)?(?:E\d+)?\)")


@dataclass(frozen=True, slots=True)
class Fields:
    """A Fortran edit descriptor: fields on a card, and characters in a field."""

    on_card: int
    width: int


@dataclass(frozen=True, slots=True)
class Header:
    """What the four or five header cards say of the matrix."""

    field: str
    symmetry: str
    shape: tuple[int, int]
    stored: int
    cards: tuple[int, int, int]
    pointer_fields: Fields
    index_fields: Fields
    value_fields: Fields | None

    @property
    def mirror(self) -> int:
        """How entries are mirrored at the diagonal, one of MIRRORS."""
        return MIRRORS[self.symmetry]

    @property
    def held(self) -> np.dtype[Any]:
        """Type that the values are parsed into."""
        return np.dtype(np.complex128 if self.field == "complex" else np.float64)

    @property
    def numbers(self) -> int:
        """Numbers in the section of the values: complex ones are their real and imaginary parts in turn."""
        return self.stored * self.held.itemsize // 8


def read_harwell_boeing(path: Path, asked: np.dtype[Any] | None) -> tuple[Compressed, Header, list[str]]:
    """Read an assembled real, complex, integer or pattern matrix, plain or gzip.

    Parameters
    ----------
    path : Path
        The file; its own header says what it holds, not its suffix.
    asked : numpy.dtype or None
        Type of the values returned; None for complex128 where the file is complex, and float64 otherwise.

    Returns
    -------
    tuple
        The matrix, its header, and sentences about it worth telling.

    Raises
    ------
    MatrixFileError
        If the file is damaged or elemental.
    MatrixSizeError
        If the matrix does not fit in memory; nothing large was allocated then.
    InputError
        If a real type is asked for and the file is complex.
    """
    with failures_of(path), TextSource(path, _HEADER_BYTES) as source:
        header, notes = _read_header(source)
        dtype = header.held if asked is None else asked
        require_imaginary(header.held, dtype, str(path))
        _check_sizes(source, header, max(dtype.itemsize, header.held.itemsize))
        source.allow((_CARD_BYTES + 2) * sum(header.cards))
        rows, cols = header.shape
        width = index_dtype(*header.shape, header.stored * (2 if header.mirror else 1))
        pointers = _section(
            source, "column pointer", header.cards[0], header.pointer_fields, cols + 1, np.int64
        )
        indices = _section(source, "row index", header.cards[1], header.index_fields, header.stored, np.int64)
        _check_structure(path, header, pointers, indices)
        row_numbers = (indices - 1).astype(width)
        del indices
        column_numbers = np.repeat(np.arange(cols, dtype=width), np.diff(pointers))
        if header.value_fields is None:
            values = np.ones(header.stored, dtype=dtype)
        else:
            numbers = _section(
                source, "value", header.cards[2], header.value_fields, header.numbers, np.float64
            )
            values = numbers.view(header.held).astype(dtype, copy=False)
    if header.mirror == HERMITIAN and bool(np.any(values[row_numbers == column_numbers].imag != 0)):
        notes.append("is called hermitian and holds a diagonal that is not real, kept as it is")
    return from_triplets(row_numbers, column_numbers, values, (rows, cols), header.mirror), header, notes


def _read_header(source: TextSource) -> tuple[Header, list[str]]:
    path = source.path
    cards = [_card(source) for _ in range(4)]
    counts = [
        _number(path, f"card 2, columns {k + 1} to {k + 14}", cards[1][k : k + 14]) for k in range(0, 70, 14)
    ]
    kind = cards[2][:3].lower()
    sizes = [
        _number(path, f"card 3, columns {k + 1} to {k + 14}", cards[2][k : k + 14]) for k in range(14, 56, 14)
    ]
    _check_kind(path, kind)
    rows, cols, stored = sizes
    field, symmetry = _FIELDS[kind[0]], _SYMMETRIES[kind[1]]
    if symmetry != "general" and rows != cols:
        raise damaged(
            path, f"is called {symmetry} and has {rows} rows and {cols} columns", "correct the sizes"
        )
    if stored and not min(rows, cols):
        raise damaged(path, f"claims {stored} entries in a matrix of {rows} rows, {cols} columns")
    if counts[4]:
        source.allow(_CARD_BYTES)
        _card(source)
    notes = []
    has_values = field != "pattern" and (counts[3] > 0 or not stored)
    if field != "pattern" and not has_values:
        notes.append(f"is called {field} and holds no values: every entry is 1")
        field = "pattern"
    header = Header(
        field=field,
        symmetry=symmetry,
        shape=(rows, cols),
        stored=stored,
        cards=(counts[1], counts[2], counts[3] if has_values else 0),
        pointer_fields=_fields(path, "column pointers", cards[3][:16], "I"),
        index_fields=_fields(path, "row indices", cards[3][16:32], "I"),
        value_fields=_fields(path, "values", cards[3][32:52], "IEDFG") if has_values and stored else None,
    )
    return header, notes


def _card(source: TextSource) -> str:
    text = source.line(_CARD_BYTES)
    if not text:
        raise damaged(source.path, "ends within its header, expected at least 4 header cards")
    # Exactly one character a byte, whatever the title is written in.
    return text.decode("latin-1").rstrip("\r\n")


def _number(path: Path, place: str, text: str) -> int:
    """Return the count that stands in `text`, 0 for blanks."""
    digits = text.strip()
    if not digits:
        return 0
    if not (digits.isascii() and digits.isdigit()):
        raise damaged(path, f"{place} hold {shown(text)}, expected a whole number from 0")
    if int(digits) >= 2**62:
        raise too_large(path, f"{place} hold {digits}, beyond 64-bit integers", "correct the file")
    return int(digits)


def _check_kind(path: Path, kind: str) -> None:
    problem = f"its type is {shown(kind)}"
    if len(kind) != 3 or kind[0] not in "rcipq" or kind[1] not in "suhzr" or kind[2] not in "ae":
        raise damaged(path, f"{problem}, expected three letters such as RUA, RSA or PUA in card 3")
    if kind[1] == "h" and kind[0] in "rip":
        problem += ": Hermitian are complex matrices only"
        raise damaged(path, problem, f"call it symmetric, {shown(kind[0] + 's' + kind[2])}")
    if kind[0] == "q":
        raise damaged(
            path, f"{problem}: its values are in another file", "save the matrix with its values in one file"
        )
    if kind[2] == "e":
        raise damaged(
            path, f"{problem}: elemental matrices are not taken", "assemble it and save it as type ..A"
        )


def _fields(path: Path, what: str, text: str, letters: str) -> Fields:
    match = _FORMAT.fullmatch("".join(text.split()).upper())
    if match is None or match[2] not in letters or len(match[1] + match[3]) > 8:
        expected = "(16I5)" if letters == "I" else "(5E16.8)"
        raise damaged(path, f"the format of its {what} is {shown(text)}, expected one such as {expected}")
    fields = Fields(int(match[1] or 1), int(match[3]))
    if not 0 < fields.on_card * fields.width <= _CARD_BYTES:
        raise damaged(
            path, f"the format of its {what} is {shown(text)}, expected 1 to {_CARD_BYTES} columns a card"
        )
    return fields


def _check_sizes(source: TextSource, header: Header, value_bytes: int) -> None:
    """Refuse more entries than the cards and the file can hold or the memory can take."""
    path, (rows, cols), stored = source.path, header.shape, header.stored
    sections = [("column pointers", header.cards[0], header.pointer_fields, cols + 1)]
    sections.append(("row indices", header.cards[1], header.index_fields, stored))
    if header.value_fields is not None:
        sections.append(("values", header.cards[2], header.value_fields, header.numbers))
    for name, cards, fields, count in sections:
        if cards * fields.on_card < count:
            problem = f"gives {cards} cards of {fields.on_card} {name} each, too few for {count}"
            raise damaged(path, problem)
    # A card has at least one character and its end.
    if 2 * sum(-(-count // fields.on_card) for _, _, fields, count in sections) - 1 > source.largest_text:
        raise damaged(path, f"claims {stored} entries in {cols} columns, more than a file of its size holds")
    full = stored * (2 if header.mirror else 1)
    index = index_dtype(*header.shape, full).itemsize
    entries = stored * (8 + value_bytes + 2 * index) + full * (value_bytes + index)
    needed = entries + 2 * index * (rows + 1) + 16 * (cols + 1)
    check_memory(path, needed, f"a matrix of {rows} rows, {cols} columns and {stored} stored entries")


def _section(
    source: TextSource, what: str, cards: int, fields: Fields, count: int, dtype: npt.DTypeLike
) -> npt.NDArray[Any]:
    """Read the `count` numbers that stand on the next `cards` cards."""
    numbers = np.empty(count, dtype=dtype)
    done = 0
    width = fields.on_card * fields.width
    for begin in range(0, cards, _CARDS_AT_ONCE):
        lines = [source.line(_CARD_BYTES) for _ in range(min(_CARDS_AT_ONCE, cards - begin))]
        text = b"".join(line.rstrip(b"\r\n")[:width].ljust(width) for line in lines)
        wanted = min(count - done, len(lines) * fields.on_card)
        cells = np.frombuffer(text, dtype=np.uint8).reshape(-1, fields.width)[:wanted]
        empty = np.flatnonzero((cells == ord(" ")).all(axis=1))
        if empty.size:
            number = done + int(empty[0])
            raise damaged(source.path, f"ends at {what} {number + 1}: {count} expected, {number} there")
        try:
            numbers[done : done + wanted] = _parsed(cells, numbers.dtype)
        except ValueError as error:
            problem = (
                f"holds a {what} that is no number among those from {done + 1} to {done + wanted} ({error})"
            )
            raise damaged(source.path, problem) from error
        done += wanted
    return numbers


def _parsed(cells: npt.NDArray[np.uint8], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return the numbers that stand in `cells`, one a row."""
    # NumPy drops bytes 0 at the end of a text, and Python takes underscores between digits.
    wrong = ((cells < ord(" ")) | (cells == ord("_"))).any(axis=1)
    if wrong.any():
        raise ValueError(shown(cells[int(wrong.argmax())].tobytes()))
    try:
        return _reals(cells) if dtype.kind == "f" else _texts(cells).astype(dtype)
    except OverflowError as error:
        raise ValueError("beyond 64-bit integers") from error


def _texts(cells: npt.NDArray[np.uint8]) -> npt.NDArray[np.bytes_]:
    return np.ascontiguousarray(cells).view(f"S{cells.shape[1]}")[:, 0]


def _reals(cells: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
    """Return the numbers that stand in `cells`, one a row, with exponents in any of Fortran's ways."""
    upper = np.where(cells >= ord("a"), cells - 32, cells)
    upper[upper == ord("D")] = ord("E")
    # 1.5-100: Fortran leaves the letter out before an exponent of three digits.
    signs = (upper == ord("-")) | (upper == ord("+"))
    mantissa = ((upper >= ord("0")) & (upper <= ord("9"))) | (upper == ord("."))
    bare = (signs[:, 1:] & mantissa[:, :-1]).any(axis=1)
    texts, numbers = _texts(upper), np.empty(len(upper))
    numbers[~bare] = texts[~bare].astype(np.float64)
    numbers[bare] = [float(_BARE_EXPONENT.sub(rb"E\1", text, count=1)) for text in texts[bare]]
    return numbers


def _check_structure(
    path: Path, header: Header, pointers: npt.NDArray[Any], indices: npt.NDArray[Any]
) -> None:
    problem: str | None = None
    if pointers[0] != 1 or pointers[-1] != header.stored + 1:
        problem = (
            f"its column pointers go from {pointers[0]} to {pointers[-1]}, expected from 1 to one more than "
            f"the entries, {header.stored + 1}"
        )
    elif (np.diff(pointers) < 0).any():
        column = int(np.flatnonzero(np.diff(pointers) < 0)[0])
        problem = (
            f"its column pointers fall from {pointers[column]} to {pointers[column + 1]}, expected a rise"
        )
    elif indices.size and (indices.min() < 1 or indices.max() > header.shape[0]):
        wrong = indices.min() if indices.min() < 1 else indices.max()
        problem = f"holds row index {wrong}, expected 1 to {header.shape[0]}"
    if problem is not None:
        raise damaged(path, problem, "correct the file or download it again")
