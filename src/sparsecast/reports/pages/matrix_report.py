"""What the page of a matrix is drawn from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from sparsecast.devices.target import Target
from sparsecast.features.structure import Structure
from sparsecast.machines.profile import Profile
from sparsecast.matrices.problem import Problem
from sparsecast.planning.plan import Plan
from sparsecast.planning.prediction import Prediction
from sparsecast.records import Bandwidth, Record


@dataclass(frozen=True, slots=True)
class Trust:
    """How far a profile can be trusted for a question.

    Attributes
    ----------
    records, matrices : int
        That its model is fitted to.
    noise : float or None
        Median difference between the earlier and the later half of the samples of its Records.
    age_days : float or None
        Since the newest of these Records; None where nobody wrote down when they were measured.
    drift : str
        In words, how the machine has changed since then.
    """

    records: int
    matrices: int
    noise: float | None
    age_days: float | None
    drift: str


@dataclass(frozen=True, slots=True, eq=False)
class MatrixReport:
    """What is known of a matrix on a machine.

    Attributes
    ----------
    problem, profile, target : Problem, Profile and Target
        What the question was about.
    structure : Structure
    prediction : Prediction
    plan : Plan or None
        None where none can be made; `unplanned` says why.
    measured : dict of str to Record
        For each format, the newest measurement that was kept of this matrix on that machine.
    roofs : tuple of Bandwidth
        What the machine reads from arrays of various sizes, small ones first.
    trust : Trust
    """

    problem: Problem
    profile: Profile
    target: Target
    structure: Structure
    prediction: Prediction
    plan: Plan | None
    unplanned: str
    measured: dict[str, Record]
    roofs: tuple[Bandwidth, ...]
    trust: Trust

    def released(self) -> Self:
        """Return the same report without the matrix, which would be made again when needed."""
        return replace(self, problem=self.problem.released())
