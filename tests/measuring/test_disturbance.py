"""When other work counts as a disturbance, and what is said of it."""

import dataclasses

import pytest

from sparsecast.measuring.condition_monitor import disturbance, waited_for_cores
from sparsecast.measuring.timing import Timing
from sparsecast.records import Conditions


def conditions(others=None, stolen=None):
    return Conditions(others, stolen)


@pytest.mark.parametrize("others, too_long", [(0.5, 0.125), (1.0, 0.25), (6.0, 0.25)])
def test_other_processes_that_samples_avoid_cost_a_quarter(others, too_long):
    found = disturbance([conditions(others)], threads=2)
    assert found.too_long == pytest.approx(too_long) and not found.is_unusable
    assert f"{others:.1f} other processes ran; times may be up to {too_long:.0%} too long" in str(found)
    assert "Calibrate again" not in found.sentence()


@pytest.mark.parametrize("stolen, threads, is_unusable", [(0.1, 1, False), (0.1, 2, False), (0.5, 2, True)])
def test_stolen_time_disturbs_without_other_processes(stolen, threads, is_unusable):
    found = disturbance([conditions(0.0, stolen)], threads)
    assert found.too_long == pytest.approx(stolen * threads) and found.is_unusable == is_unusable
    assert f"{stolen:.0%} of the processors' time went to other machines" in str(found)
    assert "processes ran" not in str(found)


@pytest.mark.parametrize(
    "slow_share, beside, waited",
    [
        (1.0, conditions(1.0), True),
        (1.0, conditions(0.0, 0.1), True),
        (1.0, conditions(0.0, 0.0), False),
        (0.9, conditions(1.0), False),
        (1.0, conditions(), None),
        (None, conditions(1.0), None),
    ],
    ids=["busy", "stolen", "slow cores", "some quiet samples", "untold", "speed not known"],
)
def test_a_product_without_a_quiet_sample_waited_for_cores(slow_share, beside, waited):
    timing = dataclasses.replace(Timing.of((1.0,)), slow_share=slow_share)
    assert waited_for_cores(timing, beside) is waited


@pytest.mark.parametrize("waiting, is_unusable", [(1, False), (2, False), (3, True)])
def test_a_calibration_whose_products_mostly_waited_is_useless(waiting, is_unusable):
    told = [Conditions(1.0, waited_for_cores=number < waiting) for number in range(4)]
    found = disturbance([*told, Conditions()], threads=2)
    assert found.waited_share == waiting / 4 and found.is_unusable == is_unusable
    assert ("no basis for a forecast" in found.sentence()) == is_unusable


def test_a_quiet_machine_is_no_disturbance():
    assert disturbance([Conditions(0.1, 0.0, waited_for_cores=False), None], threads=2) is None
