"""Scores of the models of products on many ranks, on what was kept of a machine; no rank is started."""

from __future__ import annotations

from collections.abc import Callable

from sparsecast.api.cluster_questions import AskedMatrix, asked_matrix
from sparsecast.api.clustering import training_of_ranks
from sparsecast.api.targets import calibrated_profile
from sparsecast.benchmark.cluster_replay import replay_clusters
from sparsecast.benchmark.replay import FOLDS
from sparsecast.devices.naming import machine_of
from sparsecast.distributed.distributed_product import DistributedProduct
from sparsecast.distributed.products import PRODUCTS
from sparsecast.machines.machine import PROCESSOR
from sparsecast.machines.profile import Profile
from sparsecast.matrices.partitioning.distribution import Distribution
from sparsecast.matrices.partitioning.methods import partition
from sparsecast.matrices.problem import Problem
from sparsecast.models.clusters import CLUSTER_MODELS
from sparsecast.models.clusters.cluster_model import Question
from sparsecast.records import DistributedRecord
from sparsecast.results.cluster import ClusterEvaluation


def cluster_fits() -> int:
    """Return how often `replay_ranks` fits at most."""
    return FOLDS * len(CLUSTER_MODELS.names())


def replay_ranks(
    profile: Profile | None = None, *, on_fold: Callable[[], None] = lambda: None
) -> ClusterEvaluation:
    """Score every model of products on many ranks on kept records, on matrices that it has not seen.

    Parameters
    ----------
    profile : Profile, optional
        With micro-benchmarks of ranks; by default this machine's. Its times of products on a node are used
        for matrices that can be made or read again.
    on_fold : callable
        Called after each fit.

    Raises
    ------
    ProfileError
        If there are no micro-benchmarks, or too few records.
    """
    profile = profile or calibrated_profile(machine_of(PROCESSOR))
    return replay_clusters(training_of_ranks(profile), _Questions(profile), on_fold)


class _Questions:
    """What is known of the matrices of records; each is partitioned once for each method and layout."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._known: dict[tuple[object, ...], Question] = {}
        self._last: tuple[str, AskedMatrix | None] = "", None

    def __call__(self, record: DistributedRecord) -> Question:
        configuration = record.configuration
        product = PRODUCTS.get(configuration.algorithm)
        key = record.matrix, configuration.partition, configuration.ranks, product.layout()
        if key not in self._known:
            self._known[key] = self._question(record, product)
        return self._known[key]

    def _question(self, record: DistributedRecord, product: type[DistributedProduct]) -> Question:
        distribution = Distribution.from_dict(record.distribution)
        asked = self._asked(record.matrix)
        if asked is None:
            return Question(distribution)
        parts = partition(asked.matrix, record.configuration.ranks, record.configuration.partition)
        return asked.question(product, distribution, parts)

    def _asked(self, specification: str) -> AskedMatrix | None:
        """Return a matrix, of which the last one stays; None where it cannot be made again."""
        if self._last[0] != specification:
            problem = Problem.rebuilt(specification)
            self._last = specification, asked_matrix(problem, self._profile) if problem else None
        return self._last[1]
