"""Comparison of two results of the five-minute benchmark."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sparsecast.errors import InputError
from sparsecast.papers.gahvari_2007.summary import FIGURES

#: The figures of a result that can be compared (docs/design.md, section 4).
COMPARED = FIGURES[:4]


@dataclass(frozen=True)
class Result:
    """What is compared of a result: its first target.

    Attributes
    ----------
    machine, target : str
        Names.
    figures, errors : dict of str to float or None
        MFLOP/s, and relative errors.
    mflops : dict of (str, str) to float
        Of each point, by type of the values and matrix.
    """

    machine: str
    target: str
    figures: Mapping[str, float | None]
    errors: Mapping[str, float | None]
    mflops: Mapping[tuple[str, str], float]


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


def read_result(path: Path) -> Result:
    """Read the JSON document of a benchmark's result.

    Raises
    ------
    InputError
        If the file is missing, or is not such a document.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        main = document["settings"][0]
        mflops = {(main["dtype"], point["matrix"]): float(point["mflops"]) for point in main["points"]}
        if min(mflops.values(), default=1.0) <= 0:
            raise ValueError("a speed that is not above 0")
        return Result(
            document["machine"]["name"],
            f"{main['device']} {main['dtype']} {main['threads']} threads",
            _compared(document["figures"]),
            _compared(main["errors"]),
            mflops,
        )
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror}): expected a result of sparsecast bench; check the path"
        ) from error
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise InputError(
            f"{path} is no result of the benchmark: expected what sparsecast bench --output wrote; "
            f"name another file"
        ) from error


def _compared(values: Mapping[str, float | None]) -> dict[str, float | None]:
    return {name: None if (value := values[name]) is None else float(value) for name in COMPARED}


def compare(first: Result, second: Result) -> Comparison:
    """Compare the main targets of two results."""
    figures = {}
    for name in COMPARED:
        both = first.errors[name], second.errors[name]
        error = None if both[0] is None or both[1] is None else math.hypot(both[0], both[1])
        figures[name] = ComparedFigure(first.figures[name], second.figures[name], error)
    ratios = [second.mflops[key] / first.mflops[key] for key in first.mflops if key in second.mflops]
    return Comparison(
        (first.machine, second.machine),
        (first.target, second.target),
        figures,
        len(ratios),
        statistics.median(ratios) if ratios else None,
    )
