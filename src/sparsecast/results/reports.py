"""What the pages of a matrix and of a collection show.

A feature of a matrix is unusual among others where it lies outside the range of theirs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from sparsecast.devices.target import Target
from sparsecast.features.structure import Structure
from sparsecast.machines.profile import Profile
from sparsecast.matrices.problem import Problem
from sparsecast.records import Bandwidth, Record
from sparsecast.results.evaluation import MODEL_SCORE, Evaluation, EvaluationRow
from sparsecast.results.next_steps import NEXT_STEP, STEPS_ABOUT, NextStep
from sparsecast.results.plan import Plan
from sparsecast.results.prediction import Prediction
from sparsecast.system.tabular import Column, Columns, keys

#: Added to values that may be 0 before their logarithms are taken.
_SMALL = 1e-3


@dataclass(frozen=True, slots=True)
class Rarity:
    """A trait in which a matrix is unusual."""

    trait: str  # a name of `traits`
    value: float  # of the matrix
    end: float  # of the others, the largest where `is_large`, else the least
    is_large: bool  # whether few others have a value as large; otherwise few have one as small
    #: beyond, others: how many have such a value, of how many.
    beyond: int
    others: int

    @property
    def distance(self) -> float:
        """How far outside of the range of all others, as a logarithm; 0 within it."""
        if self.beyond:
            return 0.0
        return abs(math.log((self.value + _SMALL) / (self.end + _SMALL)))


@dataclass(frozen=True, slots=True)
class Trust:
    """How far a profile can be trusted for a question."""

    #: records, matrices: that its model is fitted to.
    records: int
    matrices: int
    #: Median difference between the earlier and the later half of the samples of its Records.
    noise: float | None
    #: Since the newest of these Records; None where nobody wrote down when they were measured.
    age_days: float | None
    drift: str  # in words, how the machine has changed since then


@dataclass(frozen=True, slots=True, eq=False)
class MatrixReport:
    """What is known of a matrix on a machine."""

    #: problem, profile, target: what the question was about.
    problem: Problem
    profile: Profile
    target: Target
    structure: Structure
    prediction: Prediction
    plan: Plan | None  # None where none can be made; `unplanned` says why
    unplanned: str
    #: For each format, the newest measurement that was kept of this matrix on that machine.
    measured: dict[str, Record]
    roofs: tuple[Bandwidth, ...]  # what the machine reads from arrays of various sizes, small ones first
    trust: Trust
    next_steps: tuple[NextStep, ...] = ()  # from the plan on

    def released(self) -> Self:
        """Return the same report without the matrix, which would be made again when needed."""
        return replace(self, problem=self.problem.released())


@dataclass(frozen=True, slots=True, eq=False)
class CollectionReport:
    """What is known of a collection of matrices on a machine."""

    matrices: tuple[str, ...]  # paths, folders and gallery matrices, as they were asked for
    reports: Mapping[str, MatrixReport]  # by name; their problems hold no matrix any more
    model: str  # that forecasts each matrix, and whose errors are shown one by one
    #: Scores of the models on what was measured of these matrices, none of which they had seen.
    evaluation: Evaluation
    #: In what each measured matrix is unusual among those of other groups that the model learned from.
    rarities: Mapping[str, tuple[Rarity, ...]]
    refused: Mapping[str, str]  # matrices that cannot be forecast, and why

    @property
    def rows(self) -> list[EvaluationRow]:
        """The forecasts of `model` that were compared with a measurement."""
        return [row for row in self.evaluation.rows if row.model == self.model]

    @property
    def unmeasured(self) -> list[str]:
        """Matrices of which no measurement was kept."""
        measured = {row.matrix for row in self.evaluation.rows}
        return [name for name in self.reports if name not in measured]


_MEASURED = Column("measured", about="whether a record of the matrix was kept")

#: The documents of commands, by how they are called.
DOCUMENTS: dict[str, Columns] = {
    "report": (
        *keys("matrix", "profile", "path", "bytes"),
        Column("next_steps", columns=NEXT_STEP, about=STEPS_ABOUT),
    ),
    "report FOLDER": (
        Column("matrices", columns=(*keys("matrix", "path"), _MEASURED)),
        *keys("profile", "path", "bytes"),
        Column("models", value="evaluation.models", columns=MODEL_SCORE, by="model"),
        Column("refused", about="{matrix: reason}"),
    ),
}


#: A value is unusual where no more than this share of the others lie beyond it, on its side.
_FEW = 0.05

#: From so many others on, it can be told what few of them are.
_LEAST_OTHERS = 10


def traits(structure: Structure) -> dict[str, float]:
    """Return what is compared: numbers above 0 that do not grow with the matrix, but for its size.

    The names are those that a sentence can have as its subject.
    """
    lengths, mean = structure.row_lengths, structure.row_lengths.mean or 1.0
    rows, cols, nnz = structure.rows, structure.cols, structure.nnz
    return {
        "non-zeros": nnz,
        "columns, the entries of x": cols,
        "mean row length": lengths.mean,
        "deviation of the row lengths over their mean": lengths.deviation / mean,
        "longest row over the mean": lengths.max / mean,
        "share of empty rows": lengths.empty_rows / max(rows, 1),
        "share of mispredicted rows": (lengths.mispredicted or 0) / max(rows, 1),
        "share of entries that read another line of x": structure.locality.line_changes / max(nnz, 1),
        "share of x that a row can reach (half-bandwidth)": structure.bands.half_bandwidth / max(cols, 1),
        "values stored in 2x2 blocks for a non-zero": structure.blocks.fill[0],
        "columns over rows": cols / max(rows, 1),
    }


#: Groups that the traits are read from.
_GROUPS = ("row_lengths", "locality", "bands", "blocks")


def rarities(structure: Structure, others: Iterable[Structure]) -> tuple[Rarity, ...]:
    """Return in what a matrix is unusual among others: what lies farthest outside of their range first.

    Nothing is unusual among fewer than _LEAST_OTHERS, nor where a feature group is not known.
    """
    compared = [other for other in others if not other.lacks(_GROUPS)]
    if structure.lacks(_GROUPS) or len(compared) < _LEAST_OTHERS:
        return ()
    rare, of_others = [], [traits(other) for other in compared]
    for trait, value in traits(structure).items():
        values = np.array([each[trait] for each in of_others])
        larger, smaller = int((values >= value).sum()), int((values <= value).sum())
        if min(larger, smaller) <= _FEW * len(values):
            is_large = larger < smaller
            end = float(values.max() if is_large else values.min())
            rare.append(Rarity(trait, value, end, is_large, min(larger, smaller), len(values)))
    return tuple(sorted(rare, key=lambda rarity: (-rarity.distance, rarity.beyond)))
