"""Times of what ranks do together are the same on all of them, and those of the slowest."""

import time

import pytest

from sparsecast.distributed.processes import Nodes, node_machine
from sparsecast.distributed.timing import (
    TogetherClock,
    cores_together,
    measure_together,
    slowest,
)
from sparsecast.machines.machine import detect


def test_every_rank_has_the_longest_time(simulated):
    assert simulated.on_ranks(3, lambda comm: slowest(comm, float(comm.rank))) == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("separates", (False, True))
def test_a_clock_waits_for_the_slowest_rank(simulated, separates):
    def work(comm):
        return TogetherClock(comm, separates).seconds(lambda: time.sleep(0.002 * comm.rank), 3)

    found = simulated.on_ranks(3, work)
    assert len(set(found)) == 1
    assert found[0] >= 3 * 0.004


def test_ranks_with_other_clocks_take_the_same_samples(simulated):
    """A rank that decided by its own clock would leave the others waiting."""

    def work(comm):
        calls = {"together": lambda: (time.sleep(1e-4 * comm.rank), comm.Barrier())}
        found = measure_together(calls, TogetherClock(comm), 0.001, cores_together(comm), samples=5)
        return found["together"]

    first, *others = simulated.on_ranks(3, work)
    assert all(each == first for each in others)
    assert first.time_s >= 2e-4
    assert len(first.samples_s) >= 5


def test_a_long_call_has_few_samples(simulated):
    def work(comm):
        calls = {"long": lambda: time.sleep(0.15)}
        return measure_together(calls, TogetherClock(comm), 0.0, None, samples=40)["long"]

    assert len(simulated.on_ranks(2, work)[0].samples_s) == 5


def test_nodes_count_the_ranks_that_take_part():
    nodes = Nodes((0, 0, 0, 1, 2), cores=2)
    assert [nodes.count(range(k)) for k in (1, 3, 4, 5)] == [1, 1, 2, 3]
    assert nodes.fullest((0, 3, 4)) == 1
    assert nodes.is_oversubscribed(range(5))
    assert not nodes.is_oversubscribed((1, 2, 3))


def test_a_node_is_the_machine_of_one_process():
    """A rank that is bound to one core must find the profile that a process without mpirun wrote."""
    assert node_machine().name == detect().name
