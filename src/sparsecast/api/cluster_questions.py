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
from sparsecast.models.clusters.cluster_model import LocalTime, Question

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
    ) -> tuple[int | None, Mapping[str, LocalTime], Mapping[str, LocalTime]]:
        """Return a rank and what the node model says of it; nothing without one.

        It is the slowest of the ranks with the most entries.
        """
        if not self.has_node_times or not distribution.nnz.any():
            return None, {}, {}
        most = np.argsort(-distribution.nnz, kind="stable")[:_LOOKED_AT].tolist()
        if partition is None or block is None:
            rank = most[0]
            rows, nnz = int(distribution.rows[rank]), int(distribution.nnz[rank])
            cols = max(int(product.x_words(distribution)[rank]), 1)
            counts = counted_structure(f"counts:rows={rows}&cols={cols}&nnz={min(nnz, rows * cols)}")
            return rank, self._predicted(counts), {}
        found = []
        for rank in most:
            part = RankPart(partition, rank, block(rank))
            layout = local_layout(part) if product.has_remote else None
            # The matrix that a rank multiplies, and where that is apart the one of other ranks' x.
            matrices = (part.matrix, None) if layout is None else (layout.local, layout.remote)
            local, remote = map(self._predicted, matrices)
            found.append((rank, local, remote))
        return max(
            found,
            key=lambda own: sum(min((time.time_s for time in times.values()), default=0) for times in own[1:]),
        )

    def _predicted(self, part: Any) -> Mapping[str, LocalTime]:
        """Return the times of a part; none of one without entries, which takes no time that matters."""
        if part is None or not part.nnz:
            return {}
        if not isinstance(part, Structure):
            part.sort_indices()
        times: dict[str, LocalTime] = {}
        for forecast in self._node.predict(part):
            time = LocalTime(forecast.time_s, forecast.low_s, forecast.high_s, forecast.bytes)
            times.setdefault(forecast.candidate.format, time)
        return times


def cluster_problem(A: Any, profile: Profile, dtype: str | None = None) -> ClusterProblem:
    """Return the problem of a sparse matrix, or of the counts of a Structure; an InputError for its dtype."""
    dtype = Target.of(A, profile.machine, None, dtype).dtype
    if isinstance(A, Structure):
        return ClusterProblem(None, A, profile, dtype)
    problem = Problem.of(A)
    return ClusterProblem(problem.matrix, problem.sampled_structure, profile, dtype)
