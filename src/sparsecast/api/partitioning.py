"""Partition matrices among ranks, and tell what that makes of them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from sparsecast.errors import InputError
from sparsecast.matrices.partitioning import distributing, methods, storage
from sparsecast.matrices.partitioning.distribution import Distribution
from sparsecast.matrices.partitioning.methods import checked_ranks as checked_ranks
from sparsecast.matrices.partitioning.methods import usable_method as usable_method
from sparsecast.matrices.partitioning.partition import Partition
from sparsecast.matrices.problem import Problem
from sparsecast.results.partitions import Partitioned, Partitions


def partition(A: Any, ranks: int, method: str | None = None) -> Partition:
    """Partition a matrix among ranks.

    Parameters
    ----------
    A : sparse matrix or Problem
    ranks : int
        More than the matrix has rows are allowed: some have none then.
    method : str, optional
        ``"rows"``, ``"nonzeros"``, ``"metis"`` or ``"uniform-2d"``; by default METIS where the matrix is
        square. Without METIS installed that is ``"nonzeros"``, with a warning.

    Raises
    ------
    InputError
        If there cannot be so many ranks, or the method does not suit the matrix or their number.
    """
    return methods.partition(Problem.of(A).matrix, ranks, method)


def distribute(A: Any, partition: Partition) -> Distribution:
    """Return what a partition makes of a matrix: entries, words and messages of each rank.

    Parameters
    ----------
    A : sparse matrix
        Of shape (rows, cols).
    partition : Partition
        Of the rows and columns of A, as `sparsecast.partition` makes it.

    Raises
    ------
    InputError
        If the partition is of a matrix of another shape.
    """
    return distributing.distribute(Problem.of(A).matrix, partition)


def partitions(problem: Problem, ranks: int, method: str | None, kept: Path | None = None) -> Partitions:
    """Return the partition of a matrix by a method, or by each that suits; or alone the one that was kept."""
    A = problem.matrix
    if kept is not None:
        found = storage.load(kept, A)
        return Partitions([Partitioned(found, distributing.distribute(A, found), None)], {})
    if method is not None:
        usable, notes = methods.usable_method(method)
        return Partitions([partitioned(A, ranks, usable)], {}, notes)
    ranks = checked_ranks(ranks)
    compared: list[Partitioned] = []
    refused: dict[str, str] = {}
    for name in methods.METHODS.names():
        _, notes = usable_method(name)
        if notes:
            refused[name] = notes[0]
            continue
        try:
            compared.append(partitioned(A, ranks, name))
        except InputError as error:
            refused[name] = str(error)
    if not compared:
        raise InputError("; ".join(refused.values()))
    return Partitions(sorted(compared, key=lambda each: each.distribution.volume_words), refused)


def keep_partition(problem: Problem, partition: Partition, path: Path) -> None:
    """Write a partition of a matrix to a file."""
    storage.save(partition, path, problem.matrix)


def partitioned(A: csr_array[Any], ranks: int, method: str) -> Partitioned:
    methods.partition(csr_array(np.eye(1)), 1, method)  # compiles, which is no part of the time
    began = time.perf_counter()
    made = methods.partition(A, ranks, method)
    partition_s = time.perf_counter() - began
    return Partitioned(made, distributing.distribute(A, made), partition_s)
