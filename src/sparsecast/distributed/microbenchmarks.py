"""Micro-benchmarks of ranks: arithmetic, memory while all ranks use it, messages and collectives.

Source: M. M. Hossain, E. Saule, "Performance Model of Iterated SpMV for Distributed System", section III.C.
What they leave open: FMAs run in eight independent chains, which hide their latency of four cycles in two
units. STREAM is the triad, on all ranks of a node at once. Collectives are separated by barriers, and take
until the last rank is done.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.distributed.messages import wait_for
from sparsecast.distributed.processes import Nodes
from sparsecast.distributed.timing import TogetherClock, chains, triad
from sparsecast.machines.machine import Machine
from sparsecast.measuring.timing import Call

#: Bytes of the smallest message, the factor from one size to the next, and the largest.
_LEAST_BYTES, _FACTOR, _MOST_BYTES = 8, 4, 32 << 20

#: Words of each array of the smallest triad; sizes double until the arrays of a node are this many times
#: its last cache.
_LEAST_WORDS, _CACHES = 512, 2

#: Share of the memory of a node that the arrays of its ranks may take.
_MEMORY_SHARE = 0.05

#: Every size of this stride is measured first, so that a short budget leaves a coarse grid of all kinds.
_STRIDE = 3

#: Multiplications and additions in one call.
_FMAS = 1 << 16

#: Up to this number of ranks each is measured; beyond, powers of two.
_EACH_UP_TO = 8

#: Most neighbours of an exchange.
_MOST_NEIGHBOURS = 8


@dataclass(frozen=True, slots=True)
class Wanted:
    """One micro-benchmark to measure; the fields are those of a MicroBenchmark.

    `members` are the ranks that take part; rank 0 always does. `stage` is in which turn it is measured: 0
    first.
    """

    kind: str
    members: tuple[int, ...]
    nodes: int
    bytes: int
    neighbours: int | None
    stage: int

    @property
    def key(self) -> tuple[str, int, int, int, int | None]:
        """As that of the MicroBenchmark."""
        return self.kind, len(self.members), self.nodes, self.bytes, self.neighbours


def wanted(nodes: Nodes, machine: Machine) -> list[Wanted]:
    """Return the micro-benchmarks of some ranks, those first that most depends on.

    Measured are the first ranks, which fill nodes in order, and the messages between rank 0 and the first
    other rank of its node, and the first one of another node. Numbers of ranks that oversubscribe a node come
    last: no model learns from them.
    """
    ranks = len(nodes.of_rank)
    benchmarks: list[Wanted] = []

    def add(kind: str, members: tuple[int, ...], most: int, neighbours: int | None = None) -> None:
        for size, stage in _sizes(_LEAST_BYTES, _FACTOR, min(most, _MOST_BYTES)):
            benchmarks.append(Wanted(kind, members, nodes.count(members), size, neighbours, stage))

    last = max((cache.bytes for cache in machine.caches), default=_MOST_BYTES)
    powers = [2**power for power in range(int(math.log2(ranks)) + 1)]
    for count in sorted({*range(1, min(ranks, _EACH_UP_TO) + 1), *powers, ranks}):
        members = tuple(range(count))
        on_node, spanned = nodes.fullest(members), nodes.count(members)
        most = _limit(machine, on_node)
        benchmarks.append(Wanted("fma", members, spanned, 0, None, 0))
        # Up to the first size with which the arrays of a node are _CACHES times its last cache.
        enough = 2 * math.ceil(_CACHES * last / on_node) - 1
        for size, stage in _sizes(24 * _LEAST_WORDS, 2, min(most, enough)):
            benchmarks.append(Wanted("triad", members, spanned, size, None, stage))
        if count == 1:
            continue
        add("allgatherv", members, most // count)
        add("reduce", members, most)
        add("bcast", members, most)
        for neighbours in sorted({min(2, count - 1), min(_MOST_NEIGHBOURS, count - 1)}):
            add("neighbour exchange", members, most // (2 * neighbours), neighbours)
    for is_inside in (True, False):
        others = [rank for rank in range(1, ranks) if (nodes.of_rank[rank] == nodes.of_rank[0]) == is_inside]
        if others:
            add("ping-pong", (0, others[0]), _limit(machine, 2))
    return sorted(
        benchmarks,
        key=lambda benchmark: (
            nodes.is_oversubscribed(benchmark.members),
            benchmark.stage,
            -len(benchmark.members),
        ),
    )


def _sizes(least: int, factor: int, most: int) -> Iterator[tuple[int, int]]:
    """Give sizes from the least up to the most, each with its stage."""
    for number in itertools.count():
        size = least * factor**number
        if size > most:
            return
        yield size, int(number % _STRIDE > 0)


def _limit(machine: Machine, ranks_on_node: int) -> int:
    """Return the bytes that the arrays of one rank may take."""
    return int(_MEMORY_SHARE * machine.memory_bytes) // ranks_on_node


@dataclass(frozen=True)
class Running:
    """A micro-benchmark that is ready to be timed on the ranks that take part.

    `per_call` is what is wanted of each call: half of a round trip, one of many FMAs.
    """

    call: Call
    clock: TogetherClock
    per_call: float


def ready(benchmark: Wanted, comm: Any) -> Running:
    is_collective = benchmark.kind not in ("fma", "triad", "ping-pong")
    per_call = {"fma": 1 / _FMAS, "ping-pong": 0.5}.get(benchmark.kind, 1.0)
    return Running(_call(benchmark, comm), TogetherClock(comm, separates=is_collective), per_call)


def _call(benchmark: Wanted, comm: Any) -> Call:
    words = benchmark.bytes // 8
    vector = np.zeros(words)
    match benchmark.kind:
        case "fma":
            return lambda: chains(_FMAS, 0.5)
        case "triad":
            a, b, c = (np.full(words // 3, float(value)) for value in (0, 1, 2))
            return lambda: triad(a, b, c, 3.0)
        case "ping-pong":
            return lambda: _ping_pong(comm, vector)
        case "allgatherv":
            places = np.full(comm.size, words), words * np.arange(comm.size)
            target = [np.zeros(words * comm.size), places]
            return lambda: comm.Allgatherv(vector, target)
        case "reduce":
            total = np.zeros(words) if comm.rank == 0 else None
            return lambda: comm.Reduce(vector, total, root=0)
        case "bcast":
            return lambda: comm.Bcast(vector, root=0)
    return _neighbour_exchange(comm, words, benchmark.neighbours or 0)


def _ping_pong(comm: Any, buffer: NDArray[np.float64]) -> None:
    if comm.rank == 0:
        comm.Send(buffer, dest=1)
        comm.Recv(buffer, source=1)
    else:
        comm.Recv(buffer, source=0)
        comm.Send(buffer, dest=0)


def _neighbour_exchange(comm: Any, words: int, count: int) -> Call:
    """Ranks in a ring: each sends to those next to it on both sides, by growing distance."""
    both = itertools.chain.from_iterable((step, comm.size - step) for step in range(1, comm.size))
    steps = list(dict.fromkeys(both))[:count]
    sent, received = np.zeros((count, words)), np.zeros((count, words))

    def exchange() -> None:
        begun = [
            comm.Irecv(buffer, source=(comm.rank - step) % comm.size)
            for step, buffer in zip(steps, received, strict=True)
        ]
        begun += [
            comm.Isend(buffer, dest=(comm.rank + step) % comm.size)
            for step, buffer in zip(steps, sent, strict=True)
        ]
        wait_for(begun)

    return exchange
