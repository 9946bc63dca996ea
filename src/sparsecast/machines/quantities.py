"""Figures of data sheets as users write them: 400e9, 400GB/s, 1MiB, 2.4GHz."""

from __future__ import annotations

import math
import re

from sparsecast.errors import InputError

_PREFIXES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_PREFIXES |= {"KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
_TEXT = re.compile(r"\s*([0-9.]+(?:e[+-]?[0-9]+)?)\s*([KMGT]I?)?(\S*)\s*", re.IGNORECASE)


def quantity(what: str, text: str, unit: str) -> float:
    """Return a figure in a unit without a prefix, such as ``"B/s"``.

    `text` is a number above 0, with an optional decimal or binary prefix, and the unit; `what` names it in
    the refusal.
    """
    match = _TEXT.fullmatch(text)
    value = math.nan
    if match and match[3].lower() in ("", unit.lower()):
        try:
            value = float(match[1]) * _PREFIXES[(match[2] or "").upper()]
        except ValueError:  # more than one point
            value = math.nan
    if not 0 < value < math.inf:
        raise InputError(
            f"{what} '{text}': expected a number above 0 in {unit}, such as 400e9, 400G{unit} or 4M{unit}; "
            f"give one"
        )
    return value
