"""The models from micro-benchmarks of Hossain and Saule: of one process, and of many ranks.

Source: M. M. Hossain, E. Saule, "Performance Model of Iterated SpMV for Distributed System", section III.C:
T = L_FMA nnz + memory + communication, on ranks for the mean rank. Table I counts the accesses:

array      CSR                    COO
row index  2 rows, sequential     nnz, sequential
columns    nnz, sequential        nnz, sequential
values     nnz, sequential        nnz, sequential
x          nnz, irregular         nnz, irregular
y          rows, sequential       nnz, irregular

Irregular accesses that hit a cache count as sequential; one that misses moves a line in place of a value.
Bytes move at the bandwidth of their size: the mean of the next smaller and the next larger measured array, on
ranks that of STREAM. Communication is a polynomial in nodes, ranks and bytes for each kind.

What the paper leaves open, and what is done here:

- The kernel of COO here adds up a row in a register and writes y where the row changes; Table I, and so the
  model, charges every entry. COO sets y to zero first, which Table I leaves out; `as_printed` does so too.
- The precision of the paper's products is not stated: here it is float64.

In one process:

- L_FMA is not measured by itself here: it is what the reference product in the second cache takes for a
  word beyond the reading of that word.
- Bandwidths are those of a read by as many threads: a profile of a processor has no other.
- Misses follow from the reuse of x in the Structure instead of a run through the matrix: a cache line is
  missed where more other lines were read since than the cache holds, L3 over cores for each thread. Entries
  are in the order of the rows, so COO comes back to a line of y at once.
- As printed, caches are cold: the first read of each line of x and y misses. Ours are warm, as they are in
  our measurements: first reads miss where x and y exceed the cache.

On many ranks:

- The polynomials are of degree 2, of logarithms. A quantity that no measurement varies has no part in them.
- Reduce and Bcast have 8 ceil(n/p) bytes among p ranks, Allgatherv 8 n/P of each rank. Point to point takes
  the mean number of calls times the ping-pong of their mean bytes. A row of ranks has p neighbours in the
  order of the ranks, a column every p-th: each spans the nodes that this comes to.
- The cache is simulated on a rank's entries where the matrix is at hand (`lru_misses`). Where only counts are
  known, misses are those of accesses at random in 2D, whose matrices are permuted at random (`CacheShare`),
  and one for each line of x in 1D, in the order of the graph. COO misses each line of y that has an entry.
- As printed, caches are cold: one product from an empty cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations_with_replacement
from math import isqrt
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.features.row_blocks import RowBlocks
from sparsecast.machines.machine import PROCESSOR
from sparsecast.models import MODELS
from sparsecast.models.clusters import CLUSTER_MODELS
from sparsecast.models.clusters.cluster_model import (
    ADD_MICROBENCHMARKS,
    ClusterForecast,
    ClusterModel,
    ClusterTraining,
    Question,
    memory_bytes,
)
from sparsecast.models.clusters.local_work import CacheShare, is_random, ordered_misses, x_lines
from sparsecast.models.clusters.network import Memory
from sparsecast.models.fitting import Floats, between_points
from sparsecast.models.model import AsPrinted, Model
from sparsecast.models.training import TrainingSet
from sparsecast.papers.hossain_saule import ALGORITHMS_OF_THE_PAPER, FORMATS_OF_THE_PAPER
from sparsecast.records import Candidate, Configuration, MicroBenchmark, reads_of
from sparsecast.system.jit import njit
from sparsecast.system.memory import CACHE_LINE_BYTES

#: Bytes of a word of a reference product.
WORD_BYTES = 8

#: The kinds of micro-benchmarks that each algorithm needs.
KINDS = {"global-1d": ("allgatherv",), "local-1d": ("ping-pong",), "2d": ("reduce", "bcast")}


def accessed_bytes(way: Candidate | Configuration, rows: Floats, nnz: Floats, *, zeroes_y: bool) -> Floats:
    """Return the bytes that a product accesses; with `zeroes_y` COO sets y to zero first."""
    is_coo, value_bytes, index_bytes = way.format == "coo", way.value_bytes, way.index_bytes
    row_indices = nnz if is_coo else 2 * rows
    y = nnz if is_coo else rows
    if is_coo and zeroes_y:
        y = y + rows
    return np.asarray(
        row_indices * index_bytes + nnz * (index_bytes + value_bytes) + nnz * value_bytes + y * value_bytes
    )


def memory_terms(
    way: Candidate | Configuration, accessed: Floats, misses: Floats, bytes_per_s: Floats
) -> dict[str, Floats]:
    """Return the seconds of sequential accesses and hits, and of misses, which move a line for a value."""
    return {
        "sequential": (accessed - misses * way.value_bytes) / bytes_per_s,
        "misses": misses * CACHE_LINE_BYTES / bytes_per_s,
    }


@MODELS.register("hossain-micro")
class HossainMicro(AsPrinted, Model):
    """Operations, bytes and misses at the speeds of this machine; fitted to no product of a matrix.

    With `as_printed`, caches are cold, and COO finds its y at zero.
    """

    name: ClassVar[str] = "hossain-micro"
    version: ClassVar[int] = 3
    devices: ClassVar[tuple[str, ...] | None] = (PROCESSOR,)
    covers: ClassVar[tuple[str, ...] | None] = FORMATS_OF_THE_PAPER
    groups: ClassVar[tuple[str, ...]] = ("row_lengths", "locality")
    fma_s_: float | None  # L_FMA, seconds per non-zero; None where no reference product was timed
    #: Bytes of an array and the bytes a second at which it is read, the smallest first.
    bandwidths_: list[tuple[int, float]]

    def _fit(self, training: TrainingSet) -> None:
        threads = training.records[0].candidate.threads if training.records else 1
        reads = reads_of(training.bandwidths, PROCESSOR, threads)
        self.bandwidths_ = [(read.bytes, read.bandwidth_bytes_per_s) for read in reads]
        seconds = [record.references_s["L2"] for record in training.records if "L2" in record.references_s]
        self.fma_s_ = None
        if seconds and self.bandwidths_:
            from sparsecast.measuring.references import reference_bytes, words_a_call

            # What reading the words of the reference product leaves.
            size = reference_bytes(*self.machine_.shared_cache_bytes(threads))["L2"]
            word_s = float(np.median(seconds)) / words_a_call(size, threads)
            read_s = WORD_BYTES / float(self._bandwidth(np.array([float(size)]))[0])
            self.fma_s_ = max(0.0, word_s - read_s)

    def needed(self) -> str:
        lacking = "bandwidths of its threads" if not self.bandwidths_ else "times of reference products"
        return f"{lacking}; add them by `sparsecast calibrate`"

    def formats(self) -> list[str]:
        return [] if self.fma_s_ is None else list(FORMATS_OF_THE_PAPER)

    def terms(self, candidate: Candidate, blocks: RowBlocks) -> dict[str, Floats]:
        """Return the seconds of operations, of sequential bytes and of misses, and their sum."""
        rows, nnz = blocks.rows.astype(float), blocks.nnz.astype(float)
        accessed = accessed_bytes(candidate, rows, nnz, zeroes_y=not self.as_printed)
        speed, misses = self._bandwidth(accessed), self._misses(candidate, blocks)
        assert self.fma_s_ is not None
        terms = {"FMA": self.fma_s_ * nnz, **memory_terms(candidate, accessed, misses, speed)}
        # A matrix without rows accesses nothing.
        return {**terms, "time_s": np.maximum(sum(terms.values()), np.finfo(float).tiny)}

    def _bandwidth(self, size_bytes: Floats) -> Floats:
        sizes, speeds = (np.array(column) for column in zip(*self.bandwidths_, strict=True))
        return between_points(sizes, speeds, size_bytes)

    def _misses(self, candidate: Candidate, blocks: RowBlocks) -> Floats:
        matrix, locality = blocks.matrix, blocks.matrix.locality
        # Of the last cache the threads have its bytes over its cores for each.
        cache = self.machine_.product_caches[-1] if self.machine_.product_caches else None
        held = cache.bytes * candidate.threads / cache.shared_by if cache else 0.0
        lines = max(1.0, held / CACHE_LINE_BYTES)
        share = blocks.nnz / max(matrix.nnz, 1)
        reuse = np.asarray(locality.reuse_histogram)
        # Element k has 2**k to 2**(k + 1) other reads in between; within it they are spread evenly over the
        # octave. They are the lines read at most.
        beyond = np.clip(np.arange(len(reuse) - 1) + 1 - np.log2(lines), 0.0, 1.0)
        again = locality.line_changes * float(reuse[:-1] @ beyond)
        first = locality.line_changes * float(reuse[-1])
        lines_of_y = np.minimum(
            np.ceil(blocks.rows * candidate.value_bytes / CACHE_LINE_BYTES), blocks.nnz
        ) * (candidate.format == "coo")
        fits = first + matrix.rows * candidate.value_bytes / CACHE_LINE_BYTES <= lines
        is_cold = self.as_printed or not fits
        return np.asarray(share * (again + first * is_cold) + lines_of_y * is_cold)


def lru_misses(block: csr_array[Any], configuration: Configuration, lines: float) -> float:
    """Return the irregular accesses of a product of a block that miss an LRU cache of a number of lines.

    Section III.C.1.c: x and y share it, it is fully associative, and it is empty at first. Counted are those
    of x in both formats, and those of y in COO; the sequential y of CSR passes by.
    """
    a_line = CACHE_LINE_BYTES // configuration.value_bytes
    is_coo = configuration.format == "coo"
    return float(_misses(block.indptr, block.indices, block.shape[1], a_line, max(1, int(lines)), is_coo))


@njit(cache=True, nogil=True)
def _misses(
    indptr: NDArray[Any], indices: NDArray[Any], cols: int, a_line: int, capacity: int, is_coo: bool
) -> int:
    """Count misses; a line that is evicted was used last at the oldest access that still counts."""
    turns = 2 if is_coo else 1
    y_begin = cols // a_line + 1  # lines of x come first, those of y behind them
    last_use = np.full(y_begin + len(indptr) // a_line + 1, -1, dtype=np.int64)  # -1: not in the cache
    used = np.empty(turns * len(indices), dtype=np.int32)  # the line of each access
    access = oldest = cached = misses = 0
    for row in range(len(indptr) - 1):
        for entry in range(indptr[row], indptr[row + 1]):
            for turn in range(turns):
                line = y_begin + row // a_line if turn else indices[entry] // a_line
                if last_use[line] < 0:
                    misses += 1
                    cached += 1
                last_use[line], used[access] = access, line
                access += 1
                if cached > capacity:
                    while last_use[used[oldest]] != oldest:  # used again since, or evicted
                        oldest += 1
                    last_use[used[oldest]] = -1
                    cached -= 1
    return misses


class Polynomial:
    """Time of one kind of communication: log-log of degree 2 in nodes, ranks and bytes."""

    def __init__(self, points: Sequence[MicroBenchmark]) -> None:
        raw = np.log(np.maximum([[point.nodes, point.ranks, point.bytes] for point in points], 1.0))
        self._varies = np.ptp(raw, axis=0) > 0
        self._middle = raw.mean(axis=0)
        target = np.log([point.time_s for point in points])
        self._costs = np.linalg.lstsq(self._powers(raw), target)[0]

    def _powers(self, raw: Floats) -> Floats:
        x = (raw - self._middle)[:, self._varies]
        pairs = combinations_with_replacement(range(x.shape[1]), 2)
        return np.column_stack([np.ones(len(x)), x, *(x[:, i] * x[:, j] for i, j in pairs)])

    def __call__(self, nodes: int, ranks: int, size_bytes: float) -> float:
        raw = np.log(np.maximum([[nodes, ranks, size_bytes]], 1.0))
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
        rows, nnz = distribution.rows.astype(float), distribution.nnz.astype(float)
        accessed = accessed_bytes(configuration, rows, nnz, zeroes_y=not self.as_printed)
        share = self.memory_.share(configuration.ranks_per_node, accessed)
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
            along_row, along_column = spanned_nodes(configuration)
            return {
                "reduce": self.polynomials_["reduce"](along_row, side, vector),
                "bcast": self.polynomials_["bcast"](along_column, side, vector),
            }
        calls = float(distribution.received_messages.mean())
        a_call = value * float(distribution.received_words.mean()) / max(calls, 1e-300)
        if not calls:
            return {}
        return {"ping-pong": calls * self.polynomials_["ping-pong"](min(nodes, 2), 2, a_call)}


def spanned_nodes(on: Configuration) -> tuple[int, int]:
    """Return the most nodes that a row and a column of the grid of ranks span; ranks fill nodes in order."""
    side = isqrt(on.ranks)
    node = np.arange(side * side).reshape(side, side) // on.ranks_per_node
    return (
        max(len(set(along)) for along in node.tolist()),
        max(len(set(along)) for along in node.T.tolist()),
    )
