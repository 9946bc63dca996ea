"""Rutherford-Boeing and Harwell-Boeing files: punched-card columns in fields of fixed width.

SciPy's reader takes square unsymmetric matrices of real numbers and integers only
(decision 78). This one also takes complex, symmetric, Hermitian, skew-symmetric and
rectangular matrices and patterns. Right-hand sides after the matrix are not read.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from sparsecast.matrices import assembly
from sparsecast.matrices.assembly import Contents
from sparsecast.matrices.sources import TextSource, damaged, failures_of, shown
from sparsecast.system.integers import falls, index_dtype

_FIELDS = {"r": "real", "i": "integer", "c": "complex", "p": "pattern"}
_SYMMETRIES = {"u": "general", "r": "general", "s": "symmetric", "z": "skew-symmetric", "h": "hermitian"}

#: Suffixes that name the type of the matrix, such as ``.rua``; the header of the file repeats it.
SUFFIXES = (".rb", ".hb", *("." + "".join(letters) for letters in product("ripc", "usrzh", "ae")))

# Greatest length of a card; the format has 80 columns.
_CARD_BYTES = 1000
_HEADER_BYTES = 5 * (_CARD_BYTES + 2)
# Cards that become an array of fields at a time.
_CARDS_AT_ONCE = 20_000

_PLURALS = {"column pointer": "column pointers", "row index": "row indices", "value": "values"}
# 1.5-100: Fortran leaves the letter out before an exponent of three digits.
_BARE_EXPONENT = re.compile(rb"(?<=[0-9.])([+-])")
_FORMAT = re.compile(r"\((?:[+-]?\d+P,?)?(\d*)([IEDFG])(\d+)(?:\.\d+)?(?:E\d+)?\)")


@dataclass(frozen=True, slots=True)
class _Section:
    """Numbers on consecutive cards, in fields of equal width that a Fortran edit descriptor describes."""

    name: str
    count: int
    cards: int
    on_card: int
    width: int


@dataclass(frozen=True, slots=True)
class _Header(assembly.Header):
    """The four or five header cards; `values` is None where every entry is 1."""

    pointers: _Section
    indices: _Section
    values: _Section | None

    @property
    def sections(self) -> list[_Section]:
        return [section for section in (self.pointers, self.indices, self.values) if section]


def read_harwell_boeing(path: Path, dtype: np.dtype[Any] | None) -> Contents:
    """Read an assembled matrix, plain or gzip; its kind is that of the header, not of the suffix."""
    with failures_of(path), TextSource(path, _HEADER_BYTES) as source:
        header, notes = _read_header(source)
        dtype = header.value_type(path, dtype)
        _check_sizes(source, header, dtype)
        source.allow((_CARD_BYTES + 2) * sum(section.cards for section in header.sections))
        pointers = _numbers(source, header.pointers, np.int64)
        indices = _numbers(source, header.indices, np.int64)
        fallen, outside = falls(pointers), indices[(indices < 1) | (indices > header.shape[0])]
        if pointers[0] != 1 or pointers[-1] != header.stored + 1:
            problem = f"its column pointers go from {pointers[0]} to {pointers[-1]}, expected from 1"
            problem += f" to one more than the entries, {header.stored + 1}"
        elif fallen.size:
            before, after = pointers[fallen[0] : fallen[0] + 2]
            problem = f"its column pointers fall from {before} to {after}, expected a rise"
        elif outside.size:
            problem = f"holds row index {outside[0]}, expected 1 to {header.shape[0]}"
        else:
            problem = ""
        if problem:
            raise damaged(path, problem, "correct the file or download it again")
        width = index_dtype(*header.shape, header.whole)
        rows = (indices - 1).astype(width)
        del indices
        cols = np.repeat(np.arange(header.shape[1], dtype=width), np.diff(pointers))
        if header.values is None:
            values = np.ones(header.stored, dtype=dtype)
        else:
            values = _numbers(source, header.values, np.float64).view(header.held).astype(dtype, copy=False)
    return header.contents(rows, cols, values, notes)


def _read_header(source: TextSource) -> tuple[_Header, tuple[str, ...]]:
    path = source.path
    cards = [_card(source) for _ in range(4)]
    _, *counts, right_sides = (_number(path, 2, cards[1], first) for first in range(0, 70, 14))
    rows, cols, stored = (_number(path, 3, cards[2], first) for first in range(14, 56, 14))
    kind = cards[2][:3].lower()
    problem = f"its type is {shown(kind)}"
    if len(kind) != 3 or kind[0] not in "rcipq" or kind[1] not in "suhzr" or kind[2] not in "ae":
        raise damaged(path, f"{problem}, expected three letters such as RUA, RSA or PUA in card 3")
    if kind[1] == "h" and kind[0] in "rip":
        problem += ": Hermitian are complex matrices only"
        raise damaged(path, problem, f"call it symmetric, {shown(kind[0] + 's' + kind[2])}")
    if kind[0] == "q":
        problem += ": its values are in another file"
        raise damaged(path, problem, "save the matrix with its values in one file")
    if kind[2] == "e":
        problem += ": elemental matrices are not taken"
        raise damaged(path, problem, "assemble it and save it as type ..A")
    field, symmetry = _FIELDS[kind[0]], _SYMMETRIES[kind[1]]
    if right_sides:
        source.allow(_CARD_BYTES)
        _card(source)
    notes: tuple[str, ...] = ()
    if field != "pattern" and stored and not counts[2]:
        notes = (f"is called {field} and holds no values: every entry is 1",)
        field = "pattern"
    pointers = _section(path, "column pointer", cols + 1, counts[0], cards[3][:16])
    indices = _section(path, "row index", stored, counts[1], cards[3][16:32])
    values = None
    if field != "pattern" and stored:
        # The real and the imaginary part of a complex value are numbers of their own.
        numbers = stored * (2 if field == "complex" else 1)
        values = _section(path, "value", numbers, counts[2], cards[3][32:52])
    header = _Header(field, symmetry, (rows, cols), stored, pointers, indices, values)
    header.check_shape(path)
    return header, notes


def _card(source: TextSource) -> str:
    text = source.line(_CARD_BYTES)
    if not text:
        raise damaged(source.path, "ends within its header, expected at least 4 header cards")
    # Exactly one character a byte, whatever the title is written in.
    return text.decode("latin-1").rstrip("\r\n")


def _number(path: Path, card: int, text: str, first: int) -> int:
    """Return the count in 14 columns of a card, 0 for blanks."""
    place, digits = f"card {card}, columns {first + 1} to {first + 14}", text[first : first + 14].strip()
    if not digits:
        return 0
    if not (digits.isascii() and digits.isdigit()):
        raise damaged(path, f"{place} hold {shown(digits)}, expected a whole number from 0")
    return int(digits)


def _section(path: Path, name: str, count: int, cards: int, text: str) -> _Section:
    """Return the section whose fields an edit descriptor such as (16I5) or (5E16.8) describes."""
    letters, example = ("IEDFG", "(5E16.8)") if name == "value" else ("I", "(16I5)")
    problem = f"the format of its {_PLURALS[name]} is {shown(text)}, expected"
    match = _FORMAT.fullmatch("".join(text.split()).upper())
    if match is None or match[2] not in letters or len(match[1] + match[3]) > 8:
        raise damaged(path, f"{problem} one such as {example}")
    section = _Section(name, count, cards, int(match[1] or 1), int(match[3]))
    if not 0 < section.on_card * section.width <= _CARD_BYTES:
        raise damaged(path, f"{problem} 1 to {_CARD_BYTES} columns a card")
    return section


def _check_sizes(source: TextSource, header: _Header, dtype: np.dtype[Any]) -> None:
    """Refuse more entries than the cards, the file or the memory can hold."""
    path, cols, stored = source.path, header.shape[1], header.stored
    for section in header.sections:
        if section.cards * section.on_card < section.count:
            problem = f"gives {section.cards} cards of {section.on_card} {_PLURALS[section.name]} each"
            raise damaged(path, f"{problem}, too few for {section.count}")
    # A card has at least one character and its end.
    if 2 * sum(-(-section.count // section.on_card) for section in header.sections) - 1 > source.largest_text:
        raise damaged(path, f"claims {stored} entries in {cols} columns, more than a file of its size holds")
    index = index_dtype(*header.shape, header.whole).itemsize
    header.check_memory(path, dtype, stored * (8 + 2 * index) + 16 * (cols + 1))


def _numbers(source: TextSource, section: _Section, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    numbers = np.empty(section.count, dtype=dtype)
    done = 0
    for begin in range(0, section.cards, _CARDS_AT_ONCE):
        lines = [source.line(_CARD_BYTES) for _ in range(min(_CARDS_AT_ONCE, section.cards - begin))]
        here = numbers[done : done + len(lines) * section.on_card]
        # By the blanks first: SciPy's hb_write writes fields that are a column narrower than it declares.
        found = _parsed(b"".join(lines), numbers.dtype)
        if len(found) != len(here):
            found = _from_fields(source, section, lines, done, here)
        here[:] = found
        done += len(here)
        if not lines[-1]:  # the end of the file: a header may declare any number of cards
            break
    return numbers


def _from_fields(
    source: TextSource, section: _Section, lines: list[bytes], done: int, here: npt.NDArray[Any]
) -> npt.NDArray[Any]:
    """Return the numbers in the fields of some cards: as many as `here`, after the first `done`."""
    columns, width = section.on_card * section.width, section.width
    text = b"".join(line.rstrip(b"\r\n")[:columns].ljust(columns) for line in lines)
    cells = np.full((len(here), width + 1), ord(" "), dtype=np.uint8)
    cells[:, :width] = np.frombuffer(text, dtype=np.uint8).reshape(-1, width)[: len(here)]
    separate, is_blank = cells.tobytes(), cells <= ord(" ")
    # Each field is one word: else an empty one and one with a blank inside would make up for each other.
    if (np.count_nonzero(is_blank[:, 1:] & ~is_blank[:, :-1], axis=1) == 1).all():
        for form in (separate, _BARE_EXPONENT.sub(rb"E\1", separate)):
            if len(found := _parsed(form, here.dtype)) == len(here):
                return found
    fields = [cell.tobytes()[:width] for cell in cells]
    plain = (_BARE_EXPONENT.sub(rb"E\1", field) for field in fields)
    # The parser reads a lone sign as 0, and "- 1" as a number: a field is one word, and a number beside a 1.
    wrong = next(
        k
        for k, field in enumerate(plain)
        if len(field.split()) != 1 or len(_parsed(field + b" 1", here.dtype)) != 2
    )
    number, field = done + wrong + 1, fields[wrong]
    if field.strip():
        raise damaged(source.path, f"holds {shown(field)} for {section.name} {number}, a number expected")
    problem = f"ends at {section.name} {number}: {section.count} expected, {number - 1} there"
    raise damaged(source.path, problem)


def _parsed(text: bytes, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return the numbers of a text with blanks between them; none where anything else is among them."""
    if not text.strip():  # of which the parser makes a 0
        return np.empty(0, dtype=dtype)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)  # NumPy below 2.3 warns of what it cannot read
            return np.fromstring(text.upper().replace(b"D", b"E"), dtype=dtype, sep=" ")
    except (ValueError, DeprecationWarning):
        return np.empty(0, dtype=dtype)
