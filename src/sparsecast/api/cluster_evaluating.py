"""Scores of the models of products on many ranks, on what was kept of a machine; no rank is started."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from sparsecast.api.cluster_questions import ClusterProblem, cluster_problem
from sparsecast.api.clustering import training_of_ranks
from sparsecast.api.profiles import calibrated_profile
from sparsecast.benchmark.replay import FOLDS, replay_clusters
from sparsecast.devices import machine_of
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
    return FOLDS * sum(len(CLUSTER_MODELS.get(name).compared) for name in CLUSTER_MODELS.names())


def replay_ranks(
    profile: Profile | None = None, *, on_fold: Callable[[], None] = lambda: None
) -> ClusterEvaluation:
    """Score every model of products on many ranks on kept records, on matrices that it has not seen.

    The profile, by default this machine's, has micro-benchmarks of ranks. Its times of products on a node are
    used for matrices that can be made or read again. `on_fold` is called after each fit.
    """
    profile = profile or calibrated_profile(machine_of(PROCESSOR))
    return replay_clusters(training_of_ranks(profile), _questions(profile), on_fold)


def _questions(profile: Profile) -> Callable[[DistributedRecord], Question]:
    """Return what gives the Question of a record; a matrix is partitioned once for each method and layout."""
    questions: dict[tuple[object, ...], Question] = {}

    @lru_cache(maxsize=1)  # records of a matrix follow one another, and a matrix may be large
    def rebuilt(specification: str) -> ClusterProblem | None:
        problem = Problem.rebuilt(specification)
        return cluster_problem(problem, profile) if problem else None

    def question(record: DistributedRecord) -> Question:
        configuration = record.configuration
        product = PRODUCTS.get(configuration.algorithm)
        key = record.matrix, configuration.partition, configuration.ranks, product.layout()
        if key not in questions:
            distribution, problem = Distribution.from_dict(record.distribution), rebuilt(record.matrix)
            questions[key] = Question(distribution, deviation=record.deviation)
            if problem is not None:
                parts = partition(problem.matrix, configuration.ranks, configuration.partition)
                # The matrices of all records do not fit in memory: misses follow from counts.
                questions[key] = replace(problem.question(product, distribution, parts), block=None)
        return questions[key]

    return question
