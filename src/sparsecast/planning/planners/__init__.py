"""Planners of papers: a file in the folder `planners` of a paper plans as it prints, with its model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from sparsecast.devices.target import memory_bytes
from sparsecast.features.row_blocks import RowBlocks, StripStatistics
from sparsecast.planning.dynamic_programme import Costs, at_most
from sparsecast.records import Candidate
from sparsecast.results.plan import PlannedBlock
from sparsecast.system.registry import Registry


class Planner(ABC):
    """How a paper plans, with the model that has the name of the planner, fitted as printed."""

    is_printed: ClassVar[bool] = True  # whether it is that of a paper

    @abstractmethod
    def coarsening(self, strips: int) -> int:
        """Return how many strips of the model make one of the plan."""

    @abstractmethod
    def blocks(self, statistics: StripStatistics, costs: Costs) -> list[PlannedBlock]:
        """Return the row blocks of a matrix."""

    @abstractmethod
    def notes(self, statistics: StripStatistics, costs: Costs, blocks: list[PlannedBlock]) -> tuple[str, ...]:
        """Return what a reader of the plan has to know."""


@dataclass(frozen=True)
class Tried(Planner):
    """The plan of all rows in the way that trials found to be the best, with its measured seconds."""

    candidate: Candidate
    time_s: float
    convert_s: float
    is_printed = False

    def coarsening(self, strips: int) -> int:
        return at_most(strips)

    def notes(self, statistics: StripStatistics, costs: Costs, blocks: list[PlannedBlock]) -> tuple[str, ...]:
        return ()

    def blocks(self, statistics: StripStatistics, costs: Costs) -> list[PlannedBlock]:
        memory = memory_bytes(self.candidate, RowBlocks.of(statistics.matrix))
        last_row = statistics.matrix.rows - 1
        return [PlannedBlock(0, last_row, self.candidate, self.time_s, self.convert_s, *memory)]


#: Every planner of a paper, by the name of its model.
PLANNERS: Registry[type[Planner]] = Registry("planner", "sparsecast.planning.planners")
