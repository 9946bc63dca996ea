"""What communication costs, composed of latency, memory and links: for any number of ranks and nodes.

The physics, which measured collectives then correct by a ratio:

- A byte that a rank gets from another one passes memory four times: out of the sender's array, into a buffer
  that both see, out of it, and into the receiver's array. All ranks of a node do so at once, at their shares.
- What enters a node passes its link, which its ranks share. A transfer takes the longer of the two.
- A collective takes as many latencies as a tree of its ranks has levels.
- Ranks are on nodes in order, and a 2D grid is numbered row by row: most rows of the grid are on one node,
  and every column is on all.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, isqrt, log2

import numpy as np

from sparsecast.matrices.partitioning.distribution import Distribution
from sparsecast.models.clusters.cluster_model import ClusterTraining, Floats
from sparsecast.models.clusters.speeds import Measured, Memory, Messages
from sparsecast.records import VALUE_BYTES, Configuration, MicroBenchmark

#: Passes through memory of a byte between two ranks of a node.
PASSES = 4

#: Words that pass memory for each entry of x that is copied for a message: its index, read, written.
PACKED_WORDS = 3

COLLECTIVES = ("allgatherv", "reduce", "bcast")


@dataclass(frozen=True)
class Placement:
    """Ranks on nodes, equally many on each."""

    ranks: int
    nodes: int

    @property
    def ranks_per_node(self) -> int:
        """Ranks of the fullest node."""
        return ceil(self.ranks / self.nodes)


class Network:
    """Times of communication on a cluster.

    Parameters
    ----------
    training : ClusterTraining
        With triads and ping-pongs.
    """

    def __init__(self, training: ClusterTraining) -> None:
        self.memory = Memory(training.of_kind("triad"))
        self._messages = Messages(training.of_kind("ping-pong"))
        composed = {
            "allgatherv": self.allgatherv,
            "reduce": self.reduce,
            "bcast": self.bcast,
        }
        self.measured: dict[str, Measured] = {}
        for kind in (*COLLECTIVES, "neighbour exchange"):
            self.measured[kind] = Measured([], [])
        for kind, compose in composed.items():
            points = [each for each in training.of_kind(kind) if each.ranks > 1]
            expected = [compose(float(m.bytes), Placement(m.ranks, m.nodes)) for m in points]
            self.measured[kind] = _measured(points, expected)
        points = [m for m in training.of_kind("neighbour exchange") if m.ranks > 1 and m.neighbours]
        expected = [self._exchange_of(m) for m in points]
        self.measured["neighbour exchange"] = _measured(points, expected)

    @property
    def reaches_nodes(self) -> bool:
        """Whether messages between nodes were measured."""
        return self._messages.between is not None

    def _exchange_of(self, found: MicroBenchmark) -> float:
        messages = np.array([float(found.neighbours or 0)])
        return float(self.exchange(messages * found.bytes, messages, Placement(found.ranks, found.nodes))[0])

    def _latency_s(self, nodes: int) -> float:
        lines = [self._messages.inside, self._messages.between if nodes > 1 else None]
        return max(each.intercept for each in lines if each is not None)

    def _memory_s(self, received_bytes: Floats, on: Placement) -> Floats:
        return PASSES * received_bytes / self.memory.share(on.ranks_per_node, received_bytes)

    def _inside_s(self, received_bytes: Floats, on: Placement) -> Floats:
        """Return the seconds of bytes that a rank gets: at its share of memory, or as fast as one pair is."""
        pair = self._messages.inside
        alone = received_bytes * (pair.slope if pair is not None else 0.0)
        return np.maximum(self._memory_s(received_bytes, on), alone)

    def _link_s(self, entering_bytes: Floats, on: Placement) -> Floats:
        """Return the seconds of bytes that enter a node."""
        if on.nodes == 1 or self._messages.between is None:
            return np.zeros_like(entering_bytes)
        return entering_bytes * self._messages.between.slope

    def _collective_s(self, kind: str, received: float, entering: float, own: float, on: Placement) -> float:
        if on.ranks < 2:
            return 0.0
        received_s = self._inside_s(np.array([received]), on)
        moved = float(np.maximum(received_s, self._link_s(np.array([entering]), on))[0])
        latency = ceil(log2(on.ranks)) * self._latency_s(on.nodes)
        return (latency + moved) * float(self.measured[kind].ratio(own))

    def allgatherv(self, own_bytes: float, on: Placement) -> float:
        """Return the seconds until each rank has what every rank contributes."""
        received = own_bytes * (on.ranks - 1)
        entering = own_bytes * (on.ranks - on.ranks_per_node)
        return self._collective_s("allgatherv", received, entering, own_bytes, on)

    def reduce(self, vector_bytes: float, on: Placement) -> float:
        """Return the seconds until one rank has the sum of a vector."""
        entering = vector_bytes if on.nodes > 1 else 0.0
        return self._collective_s("reduce", vector_bytes, entering, vector_bytes, on)

    def bcast(self, vector_bytes: float, on: Placement) -> float:
        """Return the seconds until all ranks have the vector of one."""
        entering = vector_bytes if on.nodes > 1 else 0.0
        return self._collective_s("bcast", vector_bytes, entering, vector_bytes, on)

    def exchange(self, received_bytes: Floats, messages: Floats, on: Placement) -> Floats:
        """Return the seconds of each rank's messages from and to its neighbours, point to point."""
        entering = received_bytes * on.ranks_per_node * self._between_share(messages, on)
        moved = np.maximum(self._inside_s(received_bytes, on), self._link_s(entering, on))
        a_message = received_bytes / np.maximum(messages, 1.0)
        found = messages * self._latency_s(on.nodes) + moved
        return np.asarray(found * self.measured["neighbour exchange"].ratio(a_message))

    @staticmethod
    def _between_share(messages: Floats, on: Placement) -> Floats:
        """Return the share of what a rank gets that comes from other nodes: an estimate.

        The ranks of a node are taken for a square of parts, whose surface is that of a part times the
        root of their number. Of more neighbours than a node has ranks, most are elsewhere.
        """
        if on.nodes == 1:
            return np.zeros_like(messages)
        beyond = 1 - (on.ranks_per_node - 1) / np.maximum(messages, 1.0)
        return np.asarray(np.maximum(beyond, 1 / np.sqrt(on.ranks_per_node)))

    def terms(self, configuration: Configuration, found: Distribution) -> dict[str, Floats]:
        """Return the seconds of each rank in each part of a product's communication."""
        on = Placement(configuration.ranks, configuration.nodes)
        value = VALUE_BYTES[configuration.dtype]
        if configuration.algorithm == "global-1d":
            time_s = self.allgatherv(found.shape[1] * value / on.ranks, on)
            return {"allgatherv": np.full(found.ranks, time_s)}
        if configuration.algorithm == "2d":
            return self._grid_terms(value * float(found.rows.max(initial=0)), on, found.ranks)
        messages = np.maximum(found.received_messages, found.sent_messages).astype(float)
        words = np.maximum(found.received_words, found.sent_words).astype(float)
        packed = PACKED_WORDS * value * found.sent_words.astype(float)
        packed_s = packed / self.memory.share(on.ranks_per_node, packed)
        return {"exchange": self.exchange(words * value, messages, on) + packed_s}

    def _grid_terms(self, vector_bytes: float, on: Placement, ranks: int) -> dict[str, Floats]:
        """Return Reduce along the rows and Bcast along the columns of a grid, all of them at once."""
        side = isqrt(on.ranks)
        if side < 2:
            return {"reduce": np.zeros(ranks), "bcast": np.zeros(ranks)}
        k = on.ranks_per_node
        # Rows that lie on two nodes enter one of them; columns enter all nodes but their root's.
        rows_cross = on.nodes > 1 and not (k % side == 0 or on.nodes == 1)
        columns = min(side, k) * (1 - 1 / on.nodes)
        reduce_s = self._in_grid("reduce", vector_bytes, float(rows_cross), side, on)
        bcast_s = self._in_grid("bcast", vector_bytes, columns, side, on)
        return {"reduce": np.full(ranks, reduce_s), "bcast": np.full(ranks, bcast_s)}

    def _in_grid(self, kind: str, vector_bytes: float, entering: float, side: int, on: Placement) -> float:
        group = Placement(side, min(on.nodes, side))
        moved = np.maximum(
            self._inside_s(np.array([vector_bytes]), on),
            self._link_s(np.array([vector_bytes * entering]), on),
        )
        latency = ceil(log2(side)) * self._latency_s(group.nodes)
        return (latency + float(moved[0])) * float(self.measured[kind].ratio(vector_bytes))


def _measured(points: list[MicroBenchmark], expected: list[float]) -> Measured:
    return Measured(
        [float(each.bytes) for each in points],
        [each.time_s / composed for each, composed in zip(points, expected, strict=True)],
    )
