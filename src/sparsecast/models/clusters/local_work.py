"""What one rank computes in a product, from counts: bytes, misses of x, mispredicted row ends.

Indices are those of the local matrix.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsecast.distributed.products import PRODUCTS
from sparsecast.machines.machine import Machine
from sparsecast.matrices.partitioning.distribution import Distribution
from sparsecast.models.clusters.cluster_model import Floats, Question
from sparsecast.records import Configuration
from sparsecast.system.memory import CACHE_LINE_BYTES

#: Steps until the reuse that a cache holds is exact, and the reuse from which on all accesses hit.
_NEWTON_STEPS, _ALL = 25, 700.0


def streamed_bytes(configuration: Configuration, distribution: Distribution) -> Floats:
    """Return the bytes that each rank moves in order: matrix, row pointers once, y.

    COO zeroes its y, and comes to its lines once more.
    """
    value, index = configuration.value_bytes, configuration.index_bytes
    rows, nnz = distribution.rows.astype(float), distribution.nnz.astype(float)
    matrix = nnz * (value + index)
    if configuration.format == "coo":
        touched = rows * -np.expm1(-nnz / np.maximum(rows, 1.0))  # rows with an entry, entries at random
        return np.asarray(matrix + nnz * index + (rows + touched) * value)
    return np.asarray(matrix + rows * (index + value))


@dataclass(frozen=True)
class CacheShare:
    """The cache of a rank, where all cores of a processor have one."""

    lines: float

    @classmethod
    def third_level(cls, machine: Machine) -> CacheShare:
        """Return the last level over the cores that share it (section III.C.1.c)."""
        last = max(machine.caches, key=lambda cache: cache.level, default=None)
        return cls(0.0 if last is None else last.bytes / last.shared_by / CACHE_LINE_BYTES)

    @classmethod
    def all_levels(cls, machine: Machine) -> CacheShare:
        """Return L2 and the share of L3: those of server processors do not hold the same lines."""
        shares = [cache.bytes / cache.shared_by for cache in machine.caches if cache.level > 1]
        return cls(sum(shares) / CACHE_LINE_BYTES)

    def cold_misses(self, accesses: Floats, lines: Floats) -> Floats:
        """Return the misses of accesses at random over so many lines, none of them cached before.

        While the cache fills, each new line misses; afterwards, with LRU, what is beyond its size.
        """
        lines = np.maximum(lines, 1.0)
        distinct = -lines * np.expm1(-accesses / lines)
        held = np.minimum(self.lines / lines, 1 - 1e-12)
        filling = -lines * np.log1p(-held)
        return np.where(
            distinct <= self.lines, distinct, self.lines + np.maximum(accesses - filling, 0.0) * (1 - held)
        )

    def warm_misses(self, accesses: Floats, lines: Floats, others: Floats) -> Floats:
        """Return the misses of accesses at random, in products one after another.

        `others` are the lines that pass through the cache for each access, of the matrix and of y. A line is
        read again after a number of accesses that is exponential with the mean `lines`. It hits where the
        distinct lines in between are no more than the cache holds. What fits as a whole stays.
        """
        lines = np.maximum(lines, 1.0)
        fits = lines + others * accesses <= self.lines
        held = self.lines / lines
        # t = accesses over lines with others t + 1 - exp(-t) = held: Newton's steps rise to it.
        t = held / (1 + others)
        for _ in range(_NEWTON_STEPS):
            slope = np.maximum(others + np.exp(-t), 1e-300)
            t = np.minimum(t + (held - others * t + np.expm1(-t)) / slope, _ALL)
        return np.where(fits, 0.0, accesses * np.exp(-t))


def x_lines(configuration: Configuration, distribution: Distribution) -> Floats:
    """Return the cache lines that the entries of x lie in that each rank reads."""
    words = distribution.columns + distribution.received_words
    return np.asarray(words * (configuration.value_bytes / CACHE_LINE_BYTES))


def is_random(configuration: Configuration) -> bool:
    """Tell whether the columns of a rank's entries come in no order: 2D permutes at random."""
    return PRODUCTS.get(configuration.algorithm).is_2d


def ordered_misses(configuration: Configuration, distribution: Distribution, cache: CacheShare) -> Floats:
    """Return the misses of x in a matrix whose rows keep the order of its graph.

    The lines of the rank's own x come once a product, unless all that the rank touches stays in the cache.
    Each entry from another rank lies in a line of its own where a rank has all of x, and otherwise in order
    in a buffer.
    """
    value = configuration.value_bytes
    lines = distribution.columns * (value / CACHE_LINE_BYTES)
    if PRODUCTS.get(configuration.algorithm).gathers_x:
        lines = lines + distribution.received_words
    else:
        lines = lines + distribution.received_words * (value / CACHE_LINE_BYTES)
    touched = streamed_bytes(configuration, distribution) / CACHE_LINE_BYTES + lines
    return np.where(touched <= cache.lines, 0.0, lines)


def mispredicted_rows(configuration: Configuration, question: Question) -> Floats:
    """Return the rows of each rank at whose end a loop of CSR is mispredicted; COO has no such loop.

    In a block at random the row lengths are Poisson's, and the most frequent one is what is predicted. In
    1D they are those of the matrix.
    """
    distribution = question.distribution
    rows = distribution.rows.astype(float)
    if configuration.format == "coo":
        return np.zeros_like(rows)
    if not is_random(configuration):
        return rows * (question.mispredicted_share or 0.0)
    from scipy.special import gammaln

    mean = distribution.nnz / np.maximum(rows, 1.0)
    mode = np.floor(mean)
    most_frequent = np.exp(mode * np.log(np.maximum(mean, 1e-300)) - mean - gammaln(mode + 1))
    return np.asarray(rows * (1 - most_frequent))
