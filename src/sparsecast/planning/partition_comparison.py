"""Partitions of one matrix by several methods, side by side."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from sparsecast.errors import InputError
from sparsecast.matrices.partitioning.distributing import distribute
from sparsecast.matrices.partitioning.methods import checked_ranks, partition, usable_method
from sparsecast.results.partitions import Partitioned, Partitions


def partitioned(A: csr_array[Any], ranks: int, method: str) -> Partitioned:
    partition(csr_array(np.eye(1)), 1, method)  # compiles, which is no part of the time
    began = time.perf_counter()
    made = partition(A, ranks, method)
    partition_s = time.perf_counter() - began
    return Partitioned(made, distribute(A, made), partition_s)


def compared(A: csr_array[Any], ranks: int, methods: Sequence[str]) -> Partitions:
    """Return the partitions by several methods, of which some may not suit.

    An InputError says that there cannot be so many ranks, or that no method suits.
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
