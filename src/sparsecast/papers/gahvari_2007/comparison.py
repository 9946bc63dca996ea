"""Comparison of two results of the five-minute benchmark."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparsecast.errors import InputError
from sparsecast.papers.gahvari_2007.summary import FIGURES

Document = Mapping[str, Any]

#: The figures of a result that can be compared (docs/reference/documents.md).
COMPARED = FIGURES[:4]


@dataclass(frozen=True, slots=True)
class ComparedFigure:
    """One figure of two results in MFLOP/s, None where a result lacks it.

    `error` is the relative error of their ratio: the root of the sum of the squares of both errors.
    """

    first: float | None
    second: float | None
    error: float | None

    @property
    def ratio(self) -> float | None:
        """Second over first."""
        return self.second / self.first if self.first and self.second else None

    @property
    def is_different(self) -> bool | None:
        """Whether they differ by more than their errors; None where that cannot be said."""
        if self.ratio is None or self.error is None:
            return None
        return abs(self.ratio - 1) > self.error


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two results.

    Attributes
    ----------
    machines, targets : (str, str)
        Their names, and the type of the values and threads of both figures.
    figures : dict of str to ComparedFigure
    points : int
        Matrices measured in both, in the same type of values.
    points_ratio : float or None
        Median over them of the second speed over the first.
    """

    machines: tuple[str, str]
    targets: tuple[str, str]
    figures: dict[str, ComparedFigure]
    points: int
    points_ratio: float | None


def read_result(path: Path) -> dict[str, Any]:
    """Return the JSON document of a benchmark's result.

    Raises
    ------
    InputError
        If the file is missing, or is not such a document.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror}): expected a result of sparsecast bench; check the path"
        ) from error
    except ValueError:
        document = None
    if not _is_result(document):
        raise InputError(
            f"{path} is no result of the benchmark: expected what sparsecast bench --output wrote; "
            f"name another file"
        )
    return dict(document)


def _is_result(document: Any) -> bool:
    if not isinstance(document, dict) or not document.get("settings"):
        return False
    try:
        first = document["settings"][0]
        numbers = [document["figures"][name] for name in COMPARED] + [first["errors"][n] for n in COMPARED]
        speeds = [point["mflops"] for point in first["points"]]
        texts = [document["machine"]["name"], _setting(first), *(p["matrix"] for p in first["points"])]
    except (KeyError, TypeError, IndexError):
        return False
    return (
        all(value is None or isinstance(value, int | float) for value in numbers)
        and all(isinstance(speed, int | float) and speed > 0 for speed in speeds)
        and all(isinstance(text, str) for text in texts)
    )


def compare(first: Document, second: Document) -> Comparison:
    """Compare the main targets of two results, as `read_result` returns them."""
    own, other = first["settings"][0], second["settings"][0]
    figures = {}
    for name in COMPARED:
        both = own["errors"][name], other["errors"][name]
        error = None if None in both else math.hypot(*both)
        figures[name] = ComparedFigure(first["figures"][name], second["figures"][name], error)
    before, after = _speeds(own), _speeds(other)
    ratios = [after[key] / before[key] for key in before if key in after]
    return Comparison(
        (first["machine"]["name"], second["machine"]["name"]),
        (_setting(own), _setting(other)),
        figures,
        len(ratios),
        statistics.median(ratios) if ratios else None,
    )


def _speeds(target: Document) -> dict[tuple[str, str], float]:
    return {(target["dtype"], point["matrix"]): point["mflops"] for point in target["points"]}


def _setting(target: Document) -> str:
    return f"{target['device']} {target['dtype']} {target['threads']} threads"
