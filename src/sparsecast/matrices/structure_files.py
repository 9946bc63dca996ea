"""Structures without their matrices: from a JSON file, or from counts alone.

The values of such a Structure are checked before anything is indexed by them.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec

from sparsecast.errors import InputError, MatrixFileError
from sparsecast.features.structure import Structure

COUNTS_PREFIX = "counts:"

_COUNTS = ("rows", "cols", "nnz")
_REMEDY = "write it with sparsecast structure MATRIX --json"

#: Greatest number of a Structure; double precision does not represent all integers beyond it.
_GREATEST = 2**53


def read_structure(path: Path) -> tuple[str, Structure]:
    """Return the name of a matrix and its Structure, from the output of ``sparsecast structure --json``."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise _no_structure(path, f"cannot be read as JSON ({why})") from error
    document = document if isinstance(document, dict) else {}
    stored = document.get("structure", document)
    try:
        if not _is_in_range(stored):
            raise ValueError(f"numbers go up to {_GREATEST:,}")
        msgspec.convert(stored, _Counts)
        structure = Structure.from_dict(stored)
    except (KeyError, TypeError, ValueError, msgspec.ValidationError) as error:
        raise _no_structure(path, f"holds something else ({type(error).__name__}: {error})") from error
    about = document.get("matrix")
    name = about.get("name") if isinstance(about, dict) else None
    return str(name or path.stem), structure.checked()


def counted_structure(text: str) -> Structure:
    """Return the Structure of ``counts:rows=R&cols=C&nnz=N``: three counts, and no feature group."""
    pairs = re.findall(r"(?:^|&)(\w+)=([0-9]{1,15})(?=&|$)", text.removeprefix(COUNTS_PREFIX))
    counts = {name: int(value) for name, value in pairs}
    if sorted(counts) != sorted(_COUNTS) or text.count("=") != len(_COUNTS):
        raise InputError(f"'{text}': expected counts:rows=R&cols=C&nnz=N, whole numbers; correct it")
    structure = Structure(counts["rows"], counts["cols"], counts["nnz"]).checked()
    places = structure.rows * structure.cols
    if structure.nnz > places:
        raise InputError(
            f"'{text}': expected at most {places:,} non-zeros, rows times columns; correct the counts"
        )
    return structure


class _Counts(msgspec.Struct):
    rows: int
    cols: int
    nnz: int
    sampled_nnz: int | None = None
    unproven: tuple[str, ...] = ()


def _is_in_range(value: Any) -> bool:
    """Tell whether all numbers of a document are at most _GREATEST in magnitude."""
    if isinstance(value, dict | list):
        return all(map(_is_in_range, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, int | float) or abs(value) <= _GREATEST


def _no_structure(path: Path, problem: str) -> MatrixFileError:
    return MatrixFileError(f"{path} {problem}: expected the Structure of a matrix; {_REMEDY}")
