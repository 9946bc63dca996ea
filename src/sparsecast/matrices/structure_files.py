"""Structures without their matrices: a JSON file, or counts alone.

A Structure from elsewhere is checked value by value, then against itself, before anything is indexed by it.
"""

from __future__ import annotations

import json
import math
import re
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from sparsecast.errors import InputError, MatrixFileError
from sparsecast.features import FEATURES
from sparsecast.features.structure import Structure

COUNTS_PREFIX = "counts:"

_COUNTS = ("rows", "cols", "nnz")
_REMEDY = "write it with sparsecast structure MATRIX --json"

#: Numbers beyond this one are no counts of any matrix, and double precision no longer has them all.
_GREATEST = 2**53


def read_structure(path: Path) -> tuple[str, Structure]:
    """Return the name of a matrix and its Structure, from what ``sparsecast structure --json`` printed.

    Raises
    ------
    MatrixFileError
        If the file cannot be read, or is something else.
    InputError
        If the Structure contradicts itself; the message names the first contradiction.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        why = " ".join((getattr(error, "strerror", None) or str(error)).split())
        raise _no_structure(path, f"cannot be read as JSON ({why})") from error
    stored = document.get("structure", document) if isinstance(document, dict) else None
    if not isinstance(stored, dict):
        raise _no_structure(path, "has no 'structure'")
    if wrong := _wrong(stored):
        raise _no_structure(path, wrong)
    about = document.get("matrix")
    name = about.get("name") if isinstance(about, dict) else None
    return str(name or path.stem), Structure.from_dict(stored).checked()


def counted_structure(text: str) -> Structure:
    """Return the Structure of ``counts:rows=R&cols=C&nnz=N``: three counts, and no feature group."""
    pairs = re.findall(r"(?:^|&)(\w+)=([0-9]{1,15})(?=&|$)", text.removeprefix(COUNTS_PREFIX))
    counts = {name: int(value) for name, value in pairs}
    if sorted(counts) != sorted(_COUNTS) or text.count("=") != len(_COUNTS):
        raise InputError(f"'{text}': expected counts:rows=R&cols=C&nnz=N, whole numbers; correct it")
    found = Structure(counts["rows"], counts["cols"], counts["nnz"]).checked()
    if found.nnz > found.rows * found.cols:
        raise InputError(
            f"'{text}': expected at most {found.rows * found.cols:,} non-zeros in so many rows and columns; "
            f"correct the counts"
        )
    return found


def _wrong(stored: Mapping[str, Any]) -> str | None:
    """Return the first thing that is missing or of another type than a Structure has there."""
    for name in _COUNTS:
        if not _is_of(stored.get(name), int):
            return f"has {_shown(stored.get(name))} as {name}, which is no whole number from 0 on"
    if not _is_of(stored.get("sampled_nnz"), int | None):
        return f"has {_shown(stored['sampled_nnz'])} as sampled_nnz, which is no whole number from 0 on"
    for name in sorted(set(FEATURES.names()) & set(stored)):
        group, kind = stored[name], FEATURES.get(name)
        if not isinstance(group, dict) or not isinstance(group.get("version"), int):
            return f"has no version of the feature group '{name}'"
        if group["version"] != kind.version:
            continue  # such a group is taken for unknown
        hints = get_type_hints(kind)
        for feature in kind.feature_names():
            if feature not in group:
                return f"has no '{feature}' in the feature group '{name}'"
            if not _is_of(group[feature], hints[feature]):
                return f"has {_shown(group[feature])} as '{feature}' of the feature group '{name}'"
    return None


def _is_of(value: object, hint: Any) -> bool:
    """Tell whether a value of JSON is what a feature of this type can be."""
    if get_origin(hint) in (types.UnionType, Union):
        return any(_is_of(value, each) for each in get_args(hint))
    if get_origin(hint) is tuple:
        return isinstance(value, list) and all(_is_of(each, get_args(hint)[0]) for each in value)
    if hint is type(None):
        return value is None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return hint not in (int, float) and isinstance(value, hint)
    if hint is int:
        return isinstance(value, int) and 0 <= value <= _GREATEST
    return hint is float and math.isfinite(value) and 0 <= value <= _GREATEST


def _shown(value: object) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 40 else f"{text[:40]}..."


def _no_structure(path: Path, problem: str) -> MatrixFileError:
    return MatrixFileError(f"{path} {problem}: expected the Structure of a matrix; {_REMEDY}")
