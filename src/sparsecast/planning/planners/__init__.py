"""Planners of papers: a file in the folder `planners` of a paper plans as it prints, with its model."""

from __future__ import annotations

from abc import ABC, abstractmethod

from sparsecast.features.row_blocks import StripStatistics
from sparsecast.planning.dynamic_programme import Costs
from sparsecast.results.plan import PlannedBlock
from sparsecast.system.registry import Registry


class Planner(ABC):
    """How a paper plans, with the model that has the name of the planner, fitted as printed."""

    @abstractmethod
    def coarsening(self, strips: int) -> int:
        """Return how many strips of the model make one of the plan."""

    @abstractmethod
    def blocks(self, statistics: StripStatistics, costs: Costs) -> list[PlannedBlock]:
        """Return the row blocks of a matrix."""

    @abstractmethod
    def notes(self, statistics: StripStatistics, costs: Costs, blocks: list[PlannedBlock]) -> tuple[str, ...]:
        """Return what a reader of the plan has to know."""


#: Every planner of a paper, by the name of its model.
PLANNERS: Registry[type[Planner]] = Registry("planner", "sparsecast.planning.planners")
