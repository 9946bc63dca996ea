"""What communication costs, composed of latency, memory and links: for any number of ranks and nodes.

The physics, which measured collectives then correct by a ratio:

- A byte that a rank gets from another one passes memory four times: out of the sender's array, into a buffer
  that both see, out of it, and into the receiver's array. All ranks of a node do so at once, at their shares.
- What enters a node passes its link, which its ranks share. A transfer takes the longer of the two.
- A collective takes as many latencies as a tree of its ranks has levels.
- Ranks are on nodes in order, and a 2D grid is numbered row by row: most rows of the grid are on one node,
  and every column is on all.

The speeds of memory, and of messages inside and between nodes, come from micro-benchmarks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from math import ceil, isqrt, log2

import numpy as np

from sparsecast.distributed.distributed_product import ALL, COLUMN, ROW, Collective, Exchange
from sparsecast.distributed.products import PRODUCTS
from sparsecast.matrices.partitioning.distribution import Distribution
from sparsecast.models.clusters.cluster_model import ClusterTraining, Floats
from sparsecast.models.fitting import Line, between_points
from sparsecast.records import Configuration, MicroBenchmark
from sparsecast.system.tabular import grouped

#: A rank that has a node's memory for itself gets at most this multiple of its share with all cores: half of
#: the cores saturate the memory of a node. It holds below the fewest ranks that were measured alone.
MOST_OF_A_SHARE = 2.0


class Memory:
    """Bandwidth of a rank while all ranks of its node move bytes, from at least one triad."""

    def __init__(self, triads: Iterable[MicroBenchmark]) -> None:
        self._points: dict[int, tuple[Floats, Floats]] = {}
        by_ranks = grouped(triads, lambda point: point.ranks_per_node)
        for ranks in sorted(by_ranks):
            of_ranks = sorted(by_ranks[ranks], key=lambda point: point.bytes)
            sizes = np.array([point.bytes for point in of_ranks], dtype=float)
            self._points[ranks] = sizes, np.array([point.bytes / point.time_s for point in of_ranks])

    def share(self, ranks: int, size_bytes: Floats) -> Floats:
        """Return the bytes a second of one of so many ranks of a node, for data of a size.

        The mean of the next smaller and the next larger point (Hossain and Saule, section III.C.1); beyond
        them the outermost one. Between the numbers of ranks that were measured, the bandwidth of the node
        is a line of the ranks; beyond the largest it stays.
        """
        measured = list(self._points)
        upper = bisect_left(measured, ranks)
        if upper == 0:
            return self._at(measured[0], size_bytes) * min(measured[0] / ranks, MOST_OF_A_SHARE)
        if upper == len(measured):
            return self._at(measured[-1], size_bytes) * measured[-1] / ranks
        low, high = measured[upper - 1 : upper + 1]
        weight = (ranks - low) / (high - low)
        node = (1 - weight) * low * self._at(low, size_bytes) + weight * high * self._at(high, size_bytes)
        return node / ranks

    def _at(self, ranks: int, size_bytes: Floats) -> Floats:
        return between_points(*self._points[ranks], size_bytes)


def message_line(pingpongs: Sequence[MicroBenchmark]) -> Line | None:
    """Return the seconds over bytes of a message; None without any ping-pong."""
    if not pingpongs:
        return None
    sizes = np.array([point.bytes for point in pingpongs], dtype=float)
    times = np.array([point.time_s for point in pingpongs])
    if len(np.unique(sizes)) < 2:
        return Line(0.0, float(times.mean()))
    return Line.through(sizes, times)


class MeasuredRatio:
    """Ratio of measured to composed times of one kind of communication, by bytes.

    Composed times are those of the physics of `network`; a kind that nobody measured has the ratio 1.

    `scatter` is the least and greatest ratio over the median of its size; None with fewer than 5
    measurements.
    """

    def __init__(self, sizes: Sequence[float], ratios: Sequence[float]) -> None:
        measured = np.array(ratios)
        unique, where = np.unique(np.array(sizes), return_inverse=True)
        self._sizes = np.log(np.maximum(unique, 1.0))
        self._ratios = np.log([np.median(measured[where == k]) for k in range(len(unique))])
        self.scatter: tuple[float, float] | None = None
        if len(measured) >= 5:
            over = measured / np.exp(self._ratios[where])
            self.scatter = float(over.min()), float(over.max())

    def ratio(self, size_bytes: Floats | float) -> Floats:
        """Return measured over composed for messages of a size; beyond the sizes the outermost one."""
        if not len(self._sizes):
            return np.ones_like(np.asarray(size_bytes, dtype=float))
        logarithm = np.log(np.maximum(size_bytes, 1.0))
        return np.exp(np.interp(logarithm, self._sizes, self._ratios))


#: Passes through memory of a byte between two ranks of a node.
PASSES = 4

#: Words that pass memory for each entry of x that is copied for a message: its index, read, written.
PACKED_WORDS = 3

COLLECTIVES = ("allgatherv", "reduce", "bcast")


#: What has ranks, equally many on each of some nodes.
OnNodes = Configuration | MicroBenchmark


class Network:
    """Times of communication on a cluster, from triads and ping-pongs.

    `inside` and `between` are of a message inside a node and between two; None where it was not measured.
    """

    def __init__(self, training: ClusterTraining) -> None:
        self.memory = Memory(training.of_kind("triad"))
        pingpongs = training.of_kind("ping-pong")
        self.inside = message_line([point for point in pingpongs if point.nodes == 1])
        self.between = message_line([point for point in pingpongs if point.nodes > 1])
        self.measured = {kind: MeasuredRatio([], []) for kind in (*COLLECTIVES, Exchange.kind)}
        for kind in self.measured:
            points = [point for point in training.of_kind(kind) if point.ranks > 1]
            if kind == Exchange.kind:
                points = [point for point in points if point.neighbours]
            ratios = [point.time_s / self._composed_s(point) for point in points]
            self.measured[kind] = MeasuredRatio([float(point.bytes) for point in points], ratios)

    def _composed_s(self, point: MicroBenchmark) -> float:
        """Return what the physics says of a micro-benchmark whose kind has no ratio yet."""
        if point.kind != Exchange.kind:
            return self.collective(point.kind, float(point.bytes), point)
        messages = np.array([float(point.neighbours or 0)])
        return float(self.exchange(messages * point.bytes, messages, point)[0])

    def _latency_s(self, nodes: int) -> float:
        lines = [self.inside, self.between if nodes > 1 else None]
        return max(line.intercept for line in lines if line is not None)

    def _moved_s(self, received_bytes: Floats, entering_bytes: Floats, on: OnNodes) -> Floats:
        """Return the seconds of bytes that a rank gets, or of those that enter its node, if they take longer.

        A rank gets them at its share of memory, or as fast as one pair does.
        """
        memory_s = PASSES * received_bytes / self.memory.share(on.ranks_per_node, received_bytes)
        alone_s = received_bytes * (self.inside.slope if self.inside is not None else 0.0)
        link_s = np.zeros_like(entering_bytes)
        if on.nodes > 1 and self.between is not None:
            link_s = entering_bytes * self.between.slope
        return np.maximum(np.maximum(memory_s, alone_s), link_s)

    def collective(self, kind: str, own_bytes: float, on: OnNodes, group: str = ALL) -> float:
        """Return the seconds of a collective of all ranks, or of all rows or columns of their grid at once.

        `kind` and `group` are as in a Collective, and `own_bytes` those of the vector; in an allgatherv what
        each rank contributes.
        """
        side = isqrt(on.ranks)
        ranks = on.ranks if group == ALL else side
        if ranks < 2:
            return 0.0
        received = np.array([own_bytes * (ranks - 1 if kind == "allgatherv" else 1)])
        # What enters a node, over what one rank receives. Rows of the grid that lie on two nodes enter one of
        # them; columns enter all nodes but their root's.
        on_node, entering = on.ranks_per_node, 1.0
        if on.nodes == 1:
            entering = 0.0
        elif group == ROW:
            entering = float(on_node % side != 0)
        elif group == COLUMN:
            entering = min(side, on_node) * (1 - 1 / on.nodes)
        elif kind == "allgatherv":
            entering = (on.ranks - on_node) / (on.ranks - 1)
        moved_s = float(self._moved_s(received, received * entering, on)[0])
        latency_s = ceil(log2(ranks)) * self._latency_s(min(on.nodes, ranks))
        return (latency_s + moved_s) * float(self.measured[kind].ratio(own_bytes))

    def exchange(self, received_bytes: Floats, messages: Floats, on: OnNodes) -> Floats:
        """Return the seconds of each rank's messages from and to its neighbours, point to point."""
        beyond = np.zeros_like(messages)  # the share of what a rank gets that comes from other nodes
        if on.nodes > 1:
            # The ranks of a node are taken for a square of parts, whose surface is that of a part times the
            # root of their number. Of more neighbours than a node has ranks, most are elsewhere.
            elsewhere = 1 - (on.ranks_per_node - 1) / np.maximum(messages, 1.0)
            beyond = np.maximum(elsewhere, 1 / np.sqrt(on.ranks_per_node))
        moved_s = self._moved_s(received_bytes, received_bytes * on.ranks_per_node * beyond, on)
        a_message = received_bytes / np.maximum(messages, 1.0)
        seconds = messages * self._latency_s(on.nodes) + moved_s
        return np.asarray(seconds * self.measured[Exchange.kind].ratio(a_message))

    def terms(self, on: Configuration, distribution: Distribution) -> dict[str, Floats]:
        """Return the seconds of each rank in each kind of a product's communication."""
        value = on.value_bytes
        seconds: dict[str, Floats] = {}
        for part in PRODUCTS.get(on.algorithm).communication(distribution):
            if isinstance(part, Collective):
                name = part.kind
                one_s = self.collective(part.kind, value * part.words, on, part.group)
                part_s = np.full(distribution.ranks, part.calls * one_s)
            else:
                name = "exchange"
                packed = PACKED_WORDS * value * part.packed_words.astype(float)
                packed_s = packed / self.memory.share(on.ranks_per_node, packed)
                words, messages = part.words.astype(float), part.messages.astype(float)
                part_s = self.exchange(words * value, messages, on) + packed_s
            seconds[name] = seconds.get(name, 0.0) + part_s
        return seconds
