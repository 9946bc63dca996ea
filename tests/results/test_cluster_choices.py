"""What distributed products cost, and from how many ranks on more do not pay."""

import pytest

from sparsecast.models.clusters.cluster_model import ClusterForecast
from sparsecast.records import Configuration
from sparsecast.results.cluster import ClusterChoice, enough_ranks
from sparsecast.results.plan import amount


def forecast(ranks, time_s, nodes=1):
    way = Configuration("local-1d", "csr", "csr", "metis", ranks, nodes)
    return ClusterForecast(way, time_s, 1, computation_s=time_s, communication_s=0.0)


def test_a_choice_has_its_efficiency_and_its_cost_where_they_are_known():
    found = [ClusterChoice(each, 8.0, 2.5) for each in (forecast(16, 1.0, nodes=4), forecast(4, 2.0))]
    assert [each.efficiency for each in found] == [0.5, 1.0]
    assert [each.cost for each in found] == pytest.approx([2.5 * 4 / 3600, 2.5 * 2 / 3600])
    unknown = ClusterChoice(forecast(4, 2.0))
    assert (unknown.efficiency, unknown.cost) == (None, None)


def test_an_objective_is_time_joules_or_both_multiplied():
    assert [amount(name, 2.0, 10.0) for name in ("time", "energy", "edp")] == [2.0, 10.0, 20.0]


@pytest.mark.parametrize(
    ("times", "enough"),
    (
        ({1: 8.0, 4: 2.0, 16: 0.5}, 16),
        ({1: 8.0, 4: 1.04, 16: 1.0}, 4),  # 4 % for four times the ranks
        ({1: 1.0, 4: 2.0, 16: 4.0}, 1),
        ({64: 1.0}, 64),
    ),
)
def test_more_ranks_pay_while_they_gain_more_than_a_twentieth(times, enough):
    every = [forecast(ranks, time_s) for ranks, time_s in times.items()]
    slower = [forecast(ranks, 9 * time_s) for ranks, time_s in times.items()]
    assert enough_ranks([*every, *slower]) == enough
