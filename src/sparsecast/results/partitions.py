"""Partitions of one matrix by several methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sparsecast.matrices.partitioning.distribution import Distribution
from sparsecast.matrices.partitioning.methods import idle_ranks_note
from sparsecast.matrices.partitioning.partition import Partition


@dataclass(frozen=True, slots=True)
class Partitioned:
    """A partition of a matrix, and what it makes of it.

    Attributes
    ----------
    partition_s : float or None
        Seconds that the partition took; None where it was read.
    """

    partition: Partition
    distribution: Distribution
    partition_s: float | None


@dataclass(frozen=True, slots=True)
class Partitions:
    """Partitions of a matrix, least communication first; why others cannot be had; and what to say."""

    partitions: Sequence[Partitioned]
    refused: Mapping[str, str]
    said: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What was said, and whether ranks are without rows."""
        ranks, rows = self.distribution.ranks, self.distribution.shape[0]
        is_idle = any(each.partition.parts > rows for each in self.partitions)
        return (*self.said, idle_ranks_note([ranks], rows)) if is_idle else self.said

    @property
    def distribution(self) -> Distribution:
        """That of the first partition."""
        return self.partitions[0].distribution
