"""Partitions of one matrix by several methods, side by side."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from sparsecast.errors import InputError
from sparsecast.matrices.partitioning.distributing import distribute
from sparsecast.matrices.partitioning.distribution import Distribution
from sparsecast.matrices.partitioning.methods import checked_ranks, idle_ranks_note, partition, usable_method
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


def partitioned(A: csr_array[Any], ranks: int, method: str) -> Partitioned:
    """Partition a matrix, and count what becomes of it."""
    partition(csr_array(np.eye(1)), 1, method)  # compiles, which is no part of the time
    began = time.perf_counter()
    made = partition(A, ranks, method)
    partition_s = time.perf_counter() - began
    return Partitioned(made, distribute(A, made), partition_s)


def compared(A: csr_array[Any], ranks: int, methods: Sequence[str]) -> Partitions:
    """Return the partitions by several methods, of which some may not suit.

    Raises
    ------
    InputError
        If there cannot be so many ranks, or no method suits.
    """
    ranks = checked_ranks(ranks)
    found: list[Partitioned] = []
    refused: dict[str, str] = {}
    for method in methods:
        _, notes = usable_method(method)
        if notes:
            refused[method] = notes[0]
            continue
        try:
            found.append(partitioned(A, ranks, method))
        except InputError as error:
            refused[method] = str(error)
    if not found:
        raise InputError("; ".join(refused.values()))
    return Partitions(sorted(found, key=lambda each: each.distribution.volume_words), refused)
