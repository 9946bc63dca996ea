"""Micro-benchmarks of ranks: arithmetic, memory while all ranks use it, messages and collectives.

Source: M. M. Hossain, E. Saule, "Performance Model of Iterated SpMV for Distributed System", section III.C.
What they leave open: FMAs run in eight independent chains, which hide their latency of four cycles in two
units. STREAM is the triad, on all ranks of a node at once. Collectives are separated by barriers, and take
until the last rank is done.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparsecast.distributed.messages import wait_for
from sparsecast.distributed.processes import Nodes
from sparsecast.distributed.timing import SeparatedClock, TogetherClock
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

    Numbers of ranks that oversubscribe a node come last: no model learns from them.
    """
    benchmarks: list[Wanted] = []
    for count in _counts(len(nodes.of_rank)):
        members = tuple(range(count))
        benchmarks += _of_members(members, nodes, machine)
    for pair in _pairs(nodes):
        benchmarks += _messages("ping-pong", pair, nodes, _limit(machine, 2))
    return sorted(
        benchmarks,
        key=lambda benchmark: (
            nodes.is_oversubscribed(benchmark.members),
            benchmark.stage,
            -len(benchmark.members),
        ),
    )


def _of_members(members: tuple[int, ...], nodes: Nodes, machine: Machine) -> Iterator[Wanted]:
    count, on_node = len(members), nodes.fullest(members)
    yield Wanted("fma", members, nodes.count(members), 0, None, 0)
    for number, words in enumerate(_triad_words(on_node, machine)):
        yield Wanted("triad", members, nodes.count(members), 24 * words, None, _stage(number))
    if count == 1:
        return
    most = _limit(machine, on_node)
    yield from _messages("allgatherv", members, nodes, most // count)
    yield from _messages("reduce", members, nodes, most)
    yield from _messages("bcast", members, nodes, most)
    for neighbours in sorted({min(2, count - 1), min(_MOST_NEIGHBOURS, count - 1)}):
        yield from _messages("neighbour exchange", members, nodes, most // (2 * neighbours), neighbours)


def _messages(
    kind: str, members: tuple[int, ...], nodes: Nodes, most: int, neighbours: int | None = None
) -> Iterator[Wanted]:
    for number in itertools.count():
        size = _LEAST_BYTES * _FACTOR**number
        if size > min(most, _MOST_BYTES):
            return
        yield Wanted(kind, members, nodes.count(members), size, neighbours, _stage(number))


def _stage(number: int) -> int:
    return 0 if number % _STRIDE == 0 else 1


def _limit(machine: Machine, ranks_on_node: int) -> int:
    """Return the bytes that the arrays of one rank may take."""
    return int(_MEMORY_SHARE * machine.memory_bytes) // ranks_on_node


def _triad_words(ranks_on_node: int, machine: Machine) -> Iterator[int]:
    """Give the words of an array, from the first cache to beyond the last."""
    last = max((benchmark.bytes for benchmark in machine.caches), default=_MOST_BYTES)
    words = _LEAST_WORDS
    while 24 * words <= _limit(machine, ranks_on_node):
        yield words
        if 24 * words * ranks_on_node >= _CACHES * last:
            return
        words *= 2


def _counts(ranks: int) -> list[int]:
    """Return the numbers of ranks to measure: of the first ranks, which fill nodes in order."""
    powers = [2**power for power in range(int(math.log2(ranks)) + 1)]
    return sorted({*range(1, min(ranks, _EACH_UP_TO) + 1), *powers, ranks})


def _pairs(nodes: Nodes) -> list[tuple[int, int]]:
    """Return rank 0 with the first other rank of its node, and with the first one of another node."""
    others = range(1, len(nodes.of_rank))
    inside = next((rank for rank in others if nodes.of_rank[rank] == nodes.of_rank[0]), None)
    between = next((rank for rank in others if nodes.of_rank[rank] != nodes.of_rank[0]), None)
    return [(0, rank) for rank in (inside, between) if rank is not None]


@dataclass(frozen=True)
class Running:
    """A micro-benchmark that is ready to be timed on the ranks that take part.

    `per_call` is what is wanted of each call: half of a round trip, one of many FMAs.
    """

    call: Call
    clock: TogetherClock
    per_call: float = 1.0


def ready(benchmark: Wanted, comm: Any) -> Running:
    return _READY[benchmark.kind](benchmark, comm)


def _fma(benchmark: Wanted, comm: Any) -> Running:
    from sparsecast.distributed.timing import chains

    return Running(lambda: chains(_FMAS, 0.5), TogetherClock(comm), 1 / _FMAS)


def _triad(benchmark: Wanted, comm: Any) -> Running:
    from sparsecast.distributed.timing import triad

    a, b, c = (np.full(benchmark.bytes // 24, float(value)) for value in (0, 1, 2))
    return Running(lambda: triad(a, b, c, 3.0), TogetherClock(comm))


def _ping_pong(benchmark: Wanted, comm: Any) -> Running:
    buffer = np.zeros(benchmark.bytes // 8)

    def there_and_back() -> None:
        if comm.rank == 0:
            comm.Send(buffer, dest=1)
            comm.Recv(buffer, source=1)
        else:
            comm.Recv(buffer, source=0)
            comm.Send(buffer, dest=0)

    return Running(there_and_back, TogetherClock(comm), 0.5)


def _allgatherv(benchmark: Wanted, comm: Any) -> Running:
    words = benchmark.bytes // 8
    part, everything = np.zeros(words), np.zeros(words * comm.size)
    target = [everything, (np.full(comm.size, words), words * np.arange(comm.size))]
    return Running(lambda: comm.Allgatherv(part, target), SeparatedClock(comm))


def _reduce(benchmark: Wanted, comm: Any) -> Running:
    part = np.zeros(benchmark.bytes // 8)
    total = np.zeros_like(part) if comm.rank == 0 else None
    return Running(lambda: comm.Reduce(part, total, root=0), SeparatedClock(comm))


def _bcast(benchmark: Wanted, comm: Any) -> Running:
    vector = np.zeros(benchmark.bytes // 8)
    return Running(lambda: comm.Bcast(vector, root=0), SeparatedClock(comm))


def _neighbour_exchange(benchmark: Wanted, comm: Any) -> Running:
    """Ranks in a ring: each sends to those next to it on both sides, by growing distance."""
    count = benchmark.neighbours or 0
    both = itertools.chain.from_iterable((step, comm.size - step) for step in range(1, comm.size))
    steps = list(dict.fromkeys(both))[:count]
    words = benchmark.bytes // 8
    sent, received = np.zeros(words * count), np.zeros(words * count)
    places = [slice(words * number, words * (number + 1)) for number in range(count)]

    def exchange() -> None:
        begun = [
            comm.Irecv(received[place], source=(comm.rank - step) % comm.size)
            for step, place in zip(steps, places, strict=True)
        ]
        begun += [
            comm.Isend(sent[place], dest=(comm.rank + step) % comm.size)
            for step, place in zip(steps, places, strict=True)
        ]
        wait_for(begun)

    return Running(exchange, SeparatedClock(comm))


_READY: dict[str, Callable[[Wanted, Any], Running]] = {
    "fma": _fma,
    "triad": _triad,
    "ping-pong": _ping_pong,
    "allgatherv": _allgatherv,
    "reduce": _reduce,
    "bcast": _bcast,
    "neighbour exchange": _neighbour_exchange,
}
