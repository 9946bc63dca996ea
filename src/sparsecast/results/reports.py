"""What the pages of a matrix and of a collection show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

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
