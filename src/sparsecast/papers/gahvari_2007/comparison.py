"""Comparison of two results of the five-minute benchmark."""

from __future__ import annotations

import json
import math
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparsecast.errors import InputError
from sparsecast.papers.gahvari_2007.summary import FIGURES

#: The figures of a result that can be compared (docs/design.md, section 4).
COMPARED = FIGURES[:4]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two results: names of their machines, and the type of the values and threads of both."""

    machines: tuple[str, str]
    targets: tuple[str, str]
    #: In MFLOP/s, None where a result lacks it: ``first``, ``second`` and their ``ratio``; its relative
    #: ``error``, the root of the sum of the squares of both; and whether they differ by more than that,
    #: ``is_different``.
    figures: dict[str, dict[str, Any]]
    points: int  # matrices measured in both, in the same type of values
    points_ratio: float | None  # median over them of the second speed over the first


def compare(first: Path, second: Path) -> Comparison:
    """Compare the first targets of two results, which are JSON documents of the benchmark."""
    machines, targets, figures, errors, mflops = zip(*map(_read, (first, second)), strict=True)
    compared = {}
    for name in COMPARED:
        value, other = (of_result[name] for of_result in figures)
        known = [of_result[name] for of_result in errors if of_result[name] is not None]
        ratio = other / value if value and other else None
        error = math.hypot(*known) if len(known) == 2 else None
        compared[name] = {
            "first": value,
            "second": other,
            "ratio": ratio,
            "error": error,
            "is_different": None if ratio is None or error is None else abs(ratio - 1) > error,
        }
    ratios = [mflops[1][key] / mflops[0][key] for key in mflops[0] if key in mflops[1]]
    median = statistics.median(ratios) if ratios else None
    return Comparison(machines, targets, compared, len(ratios), median)


def _read(path: Path) -> tuple[str, str, dict[str, Any], dict[str, Any], dict[tuple[str, str], float]]:
    """Return machine and target, figures and errors, and the speed by type of values and matrix."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        main = document["settings"][0]
        mflops = {(main["dtype"], point["matrix"]): float(point["mflops"]) for point in main["points"]}
        if min(mflops.values(), default=1.0) <= 0:
            raise ValueError("a speed that is not above 0")
        figures, errors = (
            {name: None if values[name] is None else float(values[name]) for name in COMPARED}
            for values in (document["figures"], main["errors"])
        )
        target = f"{main['device']} {main['dtype']} {main['threads']} threads"
        return document["machine"]["name"], target, figures, errors, mflops
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror}): expected a result of sparsecast bench; check the path"
        ) from error
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise InputError(
            f"{path} is no result of the benchmark: expected what sparsecast bench --output wrote; "
            f"name another file"
        ) from error
