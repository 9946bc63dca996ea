"""Which micro-benchmarks ranks measure, and that each moves what it says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsecast.distributed.microbenchmarks import Wanted, ready, wanted
from sparsecast.distributed.processes import Nodes
from sparsecast.distributed.timing import chains, triad
from sparsecast.machines.machine import Cache, Machine
from sparsecast.records import MICROBENCHMARK_KINDS

MACHINE = Machine(
    "made up", "x86_64", 4, 4, (Cache(1, 1 << 15, 1), Cache(3, 1 << 23, 4)), (), 1 << 33, "Linux"
)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.integers(1, 6))
def test_wanted(ranks_of_nodes, cores):
    of_rank = tuple(node for node, count in enumerate(ranks_of_nodes) for _ in range(count))
    nodes, size = Nodes(of_rank, cores), len(of_rank)
    found = wanted(nodes, MACHINE)
    assert len({each.key for each in found}) == len(found)
    assert all(each.members[0] == 0 and max(each.members) < size for each in found)
    assert all(each.nodes == nodes.count(each.members) for each in found)
    assert all(each.bytes % 8 == 0 for each in found)
    with_whole = {each.kind for each in found if len(each.members) == size}
    assert with_whole >= ({"fma", "triad"} if size == 1 else set(MICROBENCHMARK_KINDS) - {"ping-pong"})
    pairs = {each.nodes for each in found if each.kind == "ping-pong"}
    assert pairs == {*([1] if ranks_of_nodes[0] > 1 else []), *([2] if len(ranks_of_nodes) > 1 else [])}
    # What no model learns from comes last.
    order = [nodes.is_oversubscribed(each.members) for each in found]
    assert order == sorted(order)
    for each in found:
        exchanged = 2 * (each.neighbours or 0)
        arrays = {"triad": 1, "allgatherv": len(each.members) + 1, "neighbour exchange": exchanged}
        held = arrays.get(each.kind, 2) * each.bytes * nodes.fullest(each.members)
        assert held <= 0.25 * MACHINE.memory_bytes
    # Triads reach from within the first cache to beyond the last, of all ranks of a node together.
    sizes = sorted(each.bytes for each in found if each.kind == "triad" and len(each.members) == size)
    on_node = nodes.fullest(range(size))
    assert min(sizes) <= 1 << 15 and max(sizes[:-1]) * on_node < 2 * (1 << 23) <= max(sizes) * on_node


@pytest.mark.parametrize("size", (2, 3, 5))
def test_each_kind_runs(simulated, size):
    def work(comm):
        for kind in MICROBENCHMARK_KINDS:
            if kind == "ping-pong" and size > 2:
                continue
            for neighbours in {1, size - 1} if kind == "neighbour exchange" else {None}:
                members = tuple(range(size))
                running = ready(Wanted(kind, members, 1, 48, neighbours, 0), comm)
                assert 0 < running.per_call <= 1
                for _ in range(2):
                    running.call()
                assert running.clock.seconds(running.call, 2) > 0
        return True

    assert all(simulated.on_ranks(size, work))


def test_each_neighbour_gets_its_message(simulated):
    """All messages of an exchange come from other ranks, equally many for each."""

    def work(comm):
        sent, received = [], []

        class Watched:
            rank, size = comm.rank, comm.size

            def Irecv(self, buffer, source):
                received.append(source)
                return comm.Irecv(buffer, source=source)

            def Isend(self, buffer, dest):
                sent.append(dest)
                return comm.Isend(buffer, dest=dest)

        ready(Wanted("neighbour exchange", tuple(range(5)), 1, 8, 3, 0), Watched()).call()
        return sent, received

    found = simulated.on_ranks(5, work)
    pairs = sorted((rank, other) for rank, (sent, _) in enumerate(found) for other in sent)
    assert pairs == sorted((other, rank) for rank, (_, received) in enumerate(found) for other in received)
    assert all(len(set(sent)) == 3 and rank not in sent for rank, (sent, _) in enumerate(found))


def test_streams_compute_what_they_say():
    a, b, c = np.zeros(9), np.arange(9.0), np.ones(9)
    triad(a, b, c, 3.0)
    assert (a == np.arange(9.0) + 3).all()
    # x = x / 2 + k goes to 2 k: 2 (1 + ... + 8).
    assert chains(8 * 200, 0.5) == pytest.approx(72.0)
