"""The model from micro-benchmarks of Hossain and Saule.

Source: M. M. Hossain, E. Saule, "Performance Model of Iterated SpMV for Distributed System", section III.C:
T = L_FMA nnz + memory + communication, for the mean rank. Memory is Table I's bytes at the bandwidth of
STREAM for their size. Accesses of x, and of y in COO, that miss a cache with LRU that a rank has to itself
move a line instead of a value. Communication is a polynomial in nodes, ranks and bytes for each kind.

What the paper leaves open, and what is done here:

- The polynomials are of degree 2, of logarithms. A quantity that no measurement varies has no part in them.
- Reduce and Bcast have 8 ceil(n/p) bytes among p ranks, Allgatherv 8 n/P of each rank. Point to point takes
  the mean number of calls times the ping-pong of their mean bytes. A row of ranks has p neighbours in the
  order of the ranks, a column every p-th: each spans the nodes that this comes to.
- The cache is simulated on a rank's entries where the matrix is at hand (`lru`). Where only counts are known,
  misses are those of accesses at random in 2D, whose matrices are permuted at random (`CacheShare`), and one
  for each line of x in 1D, in the order of the graph. COO misses each line of y that has an entry.
- As printed, caches are cold: one product from an empty cache. COO sets y to zero first, which Table I leaves
  out; `as_printed` does so too.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement
from math import isqrt
from typing import ClassVar, Self

import numpy as np

from sparsecast.models.clusters import CLUSTER_MODELS
from sparsecast.models.clusters.cluster_model import (
    ADD_MICROBENCHMARKS,
    ClusterForecast,
    ClusterModel,
    ClusterTraining,
    Floats,
    Question,
    memory_bytes,
)
from sparsecast.models.clusters.local_work import (
    CacheShare,
    is_random,
    ordered_misses,
    x_lines,
)
from sparsecast.models.clusters.network import Memory, Placement
from sparsecast.models.model import AsPrinted
from sparsecast.papers.hossain_saule.lru import lru_misses
from sparsecast.papers.hossain_saule.table_one import (
    ALGORITHMS_OF_THE_PAPER,
    FORMATS_OF_THE_PAPER,
    accessed_bytes,
    memory_terms,
)
from sparsecast.records import Configuration, MicroBenchmark
from sparsecast.system.memory import CACHE_LINE_BYTES

#: The kinds of micro-benchmarks of each.
KINDS = {"global-1d": ("allgatherv",), "local-1d": ("ping-pong",), "2d": ("reduce", "bcast")}


class Polynomial:
    """Time of one kind of communication: log-log of degree 2 in nodes, ranks and bytes."""

    def __init__(self, points: Sequence[MicroBenchmark]) -> None:
        raw = self._logarithms(*np.array([[p.nodes, p.ranks, p.bytes] for p in points], dtype=float).T)
        self._varies = np.ptp(raw, axis=0) > 0
        self._middle = raw.mean(axis=0)
        target = np.log([point.time_s for point in points])
        self._costs = np.linalg.lstsq(self._powers(raw), target)[0]

    @staticmethod
    def _logarithms(nodes: Floats, ranks: Floats, size_bytes: Floats) -> Floats:
        return np.log(np.maximum(np.column_stack([nodes, ranks, size_bytes]), 1.0))

    def _powers(self, raw: Floats) -> Floats:
        x = (raw - self._middle)[:, self._varies]
        pairs = combinations_with_replacement(range(x.shape[1]), 2)
        return np.column_stack([np.ones(len(x)), x, *(x[:, i] * x[:, j] for i, j in pairs)])

    def __call__(self, nodes: int, ranks: int, size_bytes: float) -> float:
        raw = self._logarithms(*(np.array([float(value)]) for value in (nodes, ranks, size_bytes)))
        return float(np.exp(self._powers(raw) @ self._costs)[0])


@CLUSTER_MODELS.register("hossain-micro")
class HossainMicroCluster(AsPrinted, ClusterModel):
    """Operations, bytes, misses and messages at measured speeds; fitted to no product of a matrix.

    With `as_printed`, COO finds its y at zero. `polynomials_` are of the kinds of communication that were
    measured.
    """

    name: ClassVar[str] = "hossain-micro"
    algorithms: ClassVar[tuple[str, ...] | None] = ALGORITHMS_OF_THE_PAPER
    covers: ClassVar[tuple[str, ...] | None] = FORMATS_OF_THE_PAPER

    def fit(self, training: ClusterTraining) -> Self:
        for kind in ("fma", "triad"):
            if not training.of_kind(kind):
                raise self.insufficient(
                    f"micro-benchmarks of kind {kind}, with no more ranks than cores; {ADD_MICROBENCHMARKS}"
                )
        self.fma_s_ = float(np.median([point.time_s for point in training.of_kind("fma")]))
        self.memory_ = Memory(training.of_kind("triad"))
        self.cache_ = CacheShare.third_level(training.machine)
        kinds = sorted(kind for of_algorithm in KINDS.values() for kind in of_algorithm)
        measured = {kind: [point for point in training.of_kind(kind) if point.ranks > 1] for kind in kinds}
        self.polynomials_ = {kind: Polynomial(points) for kind, points in measured.items() if points}
        if not self.polynomials_:
            raise self.insufficient(
                f"micro-benchmarks of allgatherv, reduce, bcast or ping-pong; {ADD_MICROBENCHMARKS}"
            )
        return self

    def lacking(self, configuration: Configuration, question: Question) -> str | None:
        outside = super().lacking(configuration, question)
        if outside is not None or configuration.ranks == 1:
            return outside
        missing = [k for k in KINDS[configuration.algorithm] if k not in self.polynomials_]
        if missing:
            return f"the {self.name} model expected micro-benchmarks of {missing[0]}; {ADD_MICROBENCHMARKS}"
        return None

    def _forecast(self, configuration: Configuration, question: Question) -> ClusterForecast:
        """Return the time of the mean rank."""
        distribution = question.distribution
        on = Placement(configuration.ranks, configuration.nodes)
        rows, nnz = distribution.rows.astype(float), distribution.nnz.astype(float)
        accessed = accessed_bytes(configuration, rows, nnz, zeroes_y=not self.as_printed)
        share = self.memory_.share(on.ranks_per_node, accessed)
        memory = memory_terms(configuration, accessed, self._misses(configuration, question), share)
        terms = {"FMA": self.fma_s_ * float(distribution.nnz.mean())}
        terms |= {name: float(seconds.mean()) for name, seconds in memory.items()}
        messages = self._messages(configuration, question)
        computation_s, communication_s = sum(terms.values()), sum(messages.values())
        return ClusterForecast(
            configuration,
            max(computation_s + communication_s, np.finfo(float).tiny),
            memory_bytes(configuration, question),
            tuple({**terms, **messages}.items()),
            computation_s=computation_s,
            communication_s=communication_s,
        )

    def _misses(self, configuration: Configuration, question: Question) -> Floats:
        """Return the irregular accesses of each rank that miss its cache: of x, and of y in COO."""
        distribution = question.distribution
        if question.block is not None:
            blocks = map(question.block, range(distribution.ranks))
            return np.array([lru_misses(block, configuration, self.cache_.lines) for block in blocks])
        nnz = distribution.nnz.astype(float)
        if is_random(configuration):
            misses = self.cache_.cold_misses(nnz, x_lines(configuration, distribution))
        else:
            misses = ordered_misses(configuration, distribution, CacheShare(0.0))
        if configuration.format == "coo":
            y_lines = distribution.rows * (configuration.value_bytes / CACHE_LINE_BYTES)
            misses = misses - y_lines * np.expm1(-nnz / np.maximum(y_lines, 1.0))
        # Lines are counted in fractions, and x of other ranks beside accesses: no access misses twice.
        return np.asarray(np.minimum(misses, nnz * (2 if configuration.format == "coo" else 1)))

    def _messages(self, configuration: Configuration, question: Question) -> dict[str, float]:
        distribution, ranks, nodes = question.distribution, configuration.ranks, configuration.nodes
        if ranks == 1:
            return {}
        value = configuration.value_bytes
        if configuration.algorithm == "global-1d":
            part_bytes = value * distribution.shape[1] / ranks
            return {"allgatherv": self.polynomials_["allgatherv"](nodes, ranks, part_bytes)}
        if configuration.algorithm == "2d":
            vector = float(value * distribution.rows.max(initial=0))
            side = isqrt(ranks)
            along_row, along_column = spanned_nodes(Placement(ranks, nodes))
            return {
                "reduce": self.polynomials_["reduce"](along_row, side, vector),
                "bcast": self.polynomials_["bcast"](along_column, side, vector),
            }
        calls = float(distribution.received_messages.mean())
        a_call = value * float(distribution.received_words.mean()) / max(calls, 1e-300)
        if not calls:
            return {}
        return {"ping-pong": calls * self.polynomials_["ping-pong"](min(nodes, 2), 2, a_call)}


def spanned_nodes(on: Placement) -> tuple[int, int]:
    """Return the most nodes that a row and a column of the grid of ranks span; ranks fill nodes in order."""
    side = isqrt(on.ranks)
    node = np.arange(side * side).reshape(side, side) // on.ranks_per_node
    return (
        max(len(set(along)) for along in node.tolist()),
        max(len(set(along)) for along in node.T.tolist()),
    )
