"""What is known of a matrix among ranks: counts, and what the node model says of the parts of a rank."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from sparsecast.api.sessions import Session
from sparsecast.api.settings import Setting, Trust
from sparsecast.devices.target import Target
from sparsecast.distributed.distributed_product import DistributedProduct
from sparsecast.distributed.parts import RankPart, block_of, local_layout
from sparsecast.features.structure import Structure
from sparsecast.machines.machine import PROCESSOR
from sparsecast.machines.profile import Profile
from sparsecast.matrices.partitioning.distribution import Distribution
from sparsecast.matrices.partitioning.partition import Partition
from sparsecast.matrices.problem import Problem
from sparsecast.matrices.structure_files import counted_structure
from sparsecast.models.clusters.cluster_model import Question
from sparsecast.records import Forecast

#: Ranks with the most entries, of which the slowest is looked for.
_LOOKED_AT = 2


@dataclass(frozen=True)
class ClusterProblem:
    """A matrix, or its counts, with the profile and the type that products are forecast for."""

    matrix: Any
    structure: Structure
    profile: Profile
    dtype: str

    @property
    def index_bits(self) -> int:
        """Of column indices that reach all of the matrix."""
        return 32 if max(self.structure.nnz, self.structure.rows, self.structure.cols) < 2**31 else 64

    @property
    def is_square(self) -> bool:
        """Whether it has as many rows as columns."""
        return self.structure.rows == self.structure.cols

    @cached_property
    def _node(self) -> Session:
        """What forecasts the products of one rank."""
        return Session(
            self.profile, Setting(1, self.dtype, PROCESSOR), Trust(drift_correction=False, anyway=True)
        )

    @property
    def has_node_times(self) -> bool:
        """Whether the profile has times of products on a node."""
        machine = self.profile.machine
        return machine.published_as is None and any(
            record.candidate.device == PROCESSOR for record in self.profile.records
        )

    def question(
        self, product: type[DistributedProduct], distribution: Distribution, partition: Partition | None
    ) -> Question:
        """Return what is known of the matrix in a distribution; `partition` is None where there is none."""
        structure = self.structure
        lengths = structure.groups.get("row_lengths")
        mispredicted = getattr(lengths, "mispredicted", None)
        share = None if mispredicted is None else mispredicted / max(structure.rows, 1)
        block = None if partition is None else self._block_of(partition)
        rank, local, remote = self._node_times(product, distribution, partition, block)
        return Question(distribution, local, remote, share, getattr(lengths, "deviation", None), rank, block)

    def _block_of(self, partition: Partition) -> Callable[[int], csr_array[Any]]:
        """Return what gives the block of a rank; the matrix is renumbered at the first one."""
        renumbered = cache(lambda: partition.renumbered(csr_array(self.matrix)))
        return lambda rank: block_of(renumbered(), partition, rank)

    def _node_times(
        self,
        product: type[DistributedProduct],
        distribution: Distribution,
        partition: Partition | None,
        block: Callable[[int], csr_array[Any]] | None,
    ) -> tuple[int | None, Mapping[str, Forecast], Mapping[str, Forecast]]:
        """Return a rank and what the node model says of it; nothing without one.

        It is the slowest of the ranks with the most entries.
        """
        if not self.has_node_times or not distribution.nnz.any():
            return None, {}, {}
        most = np.argsort(-distribution.nnz, kind="stable")[:_LOOKED_AT].tolist()
        if partition is None or block is None:
            return most[0], self._predicted(_counts(distribution, most[0], product)), {}
        parts = [RankPart(partition, rank, block(rank)) for rank in most]
        matrices = [(part.rank, *_matrices(part, product)) for part in parts]
        times = [(rank, self._predicted(local), self._predicted(remote)) for rank, local, remote in matrices]
        return max(times, key=lambda of_rank: _seconds(of_rank[1]) + _seconds(of_rank[2]))

    def _predicted(self, part: Any) -> Mapping[str, Forecast]:
        """Return the fastest forecast of each format."""
        times: dict[str, Forecast] = {}
        for forecast in () if part is None else self._node.predict(part):
            times.setdefault(forecast.candidate.format, forecast)
        return times


def cluster_problem(A: Any, profile: Profile, dtype: str | None = None) -> ClusterProblem:
    """Return the problem of a sparse matrix, or of the counts of a Structure; an InputError for its dtype."""
    dtype = Target.of(A, profile.machine, None, dtype).dtype
    if isinstance(A, Structure):
        return ClusterProblem(None, A, profile, dtype)
    problem = Problem.of(A)
    return ClusterProblem(problem.matrix, problem.sampled_structure, profile, dtype)


def _counts(distribution: Distribution, rank: int, product: type[DistributedProduct]) -> Structure:
    rows, nnz = int(distribution.rows[rank]), int(distribution.nnz[rank])
    cols = max(int(product.x_words(distribution)[rank]), 1)
    return counted_structure(f"counts:rows={rows}&cols={cols}&nnz={min(nnz, rows * cols)}")


def _matrices(
    part: RankPart, product: type[DistributedProduct]
) -> tuple[csr_array[Any] | None, csr_array[Any] | None]:
    """Return the matrix that a rank multiplies, and where that is apart the one of other ranks' x."""
    if not product.has_remote:
        return _usable(part.matrix), None
    layout = local_layout(part)
    return _usable(layout.local), _usable(layout.remote)


def _seconds(times: Mapping[str, Forecast]) -> float:
    """Return the time of the fastest format; 0 of nothing."""
    return min((time.time_s for time in times.values()), default=0.0)


def _usable(part: csr_array[Any]) -> csr_array[Any] | None:
    """Return a part with entries; None for one without, which takes no time that matters."""
    part.sort_indices()
    return part if part.nnz else None
