"""Speeds of a cluster from its micro-benchmarks: memory, messages inside and between nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from sparsecast.models.clusters.cluster_model import Floats
from sparsecast.models.fitting import Line, between_points
from sparsecast.records import MicroBenchmark
from sparsecast.system.grouping import grouped

#: A rank that has a node's memory for itself gets at most this multiple of its share with all cores: half of
#: the cores saturate the memory of a node. It holds below the fewest ranks that were measured alone.
MOST_OF_A_SHARE = 2.0


class Memory:
    """Bandwidth of a rank while all ranks of its node move bytes, from at least one triad."""

    def __init__(self, triads: Iterable[MicroBenchmark]) -> None:
        self._points: dict[int, tuple[Floats, Floats]] = {}
        by_ranks = grouped(triads, lambda point: point.ranks // point.nodes)
        for ranks in sorted(by_ranks):
            of_ranks = sorted(by_ranks[ranks], key=lambda point: point.bytes)
            sizes, speeds = (
                [point.bytes for point in of_ranks],
                [point.bytes / point.time_s for point in of_ranks],
            )
            self._points[ranks] = np.array(sizes, dtype=float), np.array(speeds)

    def share(self, ranks: int, size_bytes: Floats) -> Floats:
        """Return the bytes a second of one of so many ranks of a node, for data of a size.

        The mean of the next smaller and the next larger point (Hossain and Saule, section III.C.1); beyond
        them the outermost one. Between the numbers of ranks that were measured, the bandwidth of the node
        is a line of the ranks; beyond the largest it stays.
        """
        measured = list(self._points)
        if ranks in self._points:
            return self._at(ranks, size_bytes)
        if ranks < measured[0]:
            most = self._at(measured[0], size_bytes)
            return most * min(measured[0] / ranks, MOST_OF_A_SHARE)
        if ranks > measured[-1]:
            return self._at(measured[-1], size_bytes) * measured[-1] / ranks
        upper = next(k for k in measured if k > ranks)
        lower = measured[measured.index(upper) - 1]
        weight = (ranks - lower) / (upper - lower)
        node = (1 - weight) * lower * self._at(lower, size_bytes)
        return (node + weight * upper * self._at(upper, size_bytes)) / ranks

    def _at(self, ranks: int, size_bytes: Floats) -> Floats:
        return between_points(*self._points[ranks], size_bytes)


class Messages:
    """Seconds over bytes of a message inside a node and between two, None without any ping-pong."""

    def __init__(self, pingpongs: Sequence[MicroBenchmark]) -> None:
        self.inside = self._line([point for point in pingpongs if point.nodes == 1])
        self.between = self._line([point for point in pingpongs if point.nodes > 1])

    @staticmethod
    def _line(points: Sequence[MicroBenchmark]) -> Line | None:
        if not points:
            return None
        sizes = np.array([point.bytes for point in points], dtype=float)
        times = np.array([point.time_s for point in points])
        if len(np.unique(sizes)) < 2:
            return Line(0.0, float(times.mean()))
        return Line.through(sizes, times)


class Measured:
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
