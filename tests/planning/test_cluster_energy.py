"""Joules of products on many ranks, held against the model of energy of one node."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import random_array

from sparsecast.devices.target import Target
from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.machines.machine import PROCESSOR, detect
from sparsecast.models.clusters.cluster_model import ClusterForecast
from sparsecast.models.power import KINDS, ClusterPower, GivenPower
from sparsecast.records import Configuration

MACHINE = detect()
JOULES = {"idle": 50.0, **{kind: (place + 1) * 1e-10 for place, kind in enumerate(KINDS)}}


@pytest.fixture(scope="module")
def whole():
    return structure(random_array((4000, 3000), density=0.01, format="csr", rng=np.random.default_rng(1)))


def forecast(nodes, ranks=4, time_s=1e-3, low_s=None, high_s=None, name="csr"):
    way = Configuration("global-1d", name, name, "rows", ranks, nodes)
    return ClusterForecast(way, time_s, 1, low_s=low_s, high_s=high_s)


@pytest.mark.parametrize("name", ("csr", "coo"))
def test_one_node_costs_what_the_model_of_a_node_tells(whole, name):
    found = ClusterPower(MACHINE, JOULES).of(forecast(1, name=name), whole)
    blocks = RowBlocks.of(whole)
    candidate = Target(PROCESSOR, "float64", 32, 4).candidate(name, blocks, MACHINE)
    time = SimpleNamespace(
        machine_=MACHINE,
        device_=PROCESSOR,
        conversion_=None,
        values=lambda *_: np.array([1e-3]),
    )
    assert found.energy_j == pytest.approx(float(GivenPower(JOULES, time).values(candidate, blocks)[0]))
    assert found.energy_j > 50e-3
    assert (found.energy_low_j, found.energy_high_j) == (None, None)


def test_idle_power_is_paid_on_each_node_and_rows_and_entries_once(whole):
    idle, work = ClusterPower(MACHINE, {"idle": 50.0}), ClusterPower(MACHINE, {"rows": 1e-6, "entries": 1e-9})
    assert idle.of(forecast(4), whole).energy_j == pytest.approx(4 * idle.of(forecast(1), whole).energy_j)
    assert work.of(forecast(4), whole).energy_j == pytest.approx(work.of(forecast(1), whole).energy_j)


def test_a_share_that_fits_in_the_caches_moves_no_bytes_from_beyond(whole):
    beyond = ClusterPower(MACHINE, {"bytes beyond L2": 1.0})
    nodes = 1024
    assert beyond.of(forecast(nodes, ranks=nodes), whole).energy_j == 0
    large = structure(random_array((2000, 2000), density=0.9, format="csr", rng=np.random.default_rng(1)))
    assert beyond.of(forecast(1, ranks=1), large).energy_j > 0


def test_ends_hold_the_errors_of_power_and_of_time(whole):
    power = ClusterPower(MACHINE, JOULES, ends=(0.5, 2.0))
    exact = power.of(forecast(2, low_s=1e-3, high_s=1e-3), whole)
    assert exact.energy_low_j == pytest.approx(exact.energy_j / 2)
    assert exact.energy_high_j == pytest.approx(exact.energy_j * 2)
    wide = power.of(forecast(2, low_s=5e-4, high_s=2e-3), whole)
    assert wide.energy_low_j == pytest.approx(wide.energy_j / 2 ** np.sqrt(2))
    assert power.of(forecast(2), whole).energy_low_j is None
