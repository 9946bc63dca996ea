"""When other work counts as a disturbance, and what is said of it."""

from __future__ import annotations

import pytest

from sparsecast.measuring.disturbance import disturbance, waited_for_cores
from sparsecast.measuring.timing import Timing
from sparsecast.records import Conditions


def conditions(others=None, stolen=None):
    return Conditions(others, stolen, {})


@pytest.mark.parametrize(
    "others, threads, cores, too_long, is_unusable",
    [
        (1.0, 1, 2, 0.15, False),
        (1.0, 2, 2, 0.8, False),
        (2.0, 1, 2, 0.55, False),
        (2.0, 2, 2, 1.6, True),
        (4.0, 4, 16, 0.6, False),
    ],
)
def test_other_processes_cost_more_where_no_core_is_free(others, threads, cores, too_long, is_unusable):
    found = disturbance([conditions(others)], threads, cores)
    assert found.too_long == pytest.approx(too_long) and found.is_unusable == is_unusable
    assert f"{others:.1f} other processes ran; times may be up to {too_long:.0%} too long" in str(found)
    assert ("Calibrate again" in found.sentence()) == is_unusable


def test_stolen_time_disturbs_without_other_processes():
    found = disturbance([conditions(0.0, 0.1)], threads=1, cores=2)
    assert found.too_long == pytest.approx(0.1)
    assert "10% of the processors' time went to other machines" in str(found)
    assert "processes ran" not in str(found)


@pytest.mark.parametrize(
    "together_s, alone_s, beside, waited",
    [
        (3e-3, 1e-3, conditions(1.0), True),
        (3e-3, 1e-3, conditions(0.0, 0.1), True),
        (3e-3, 1e-3, conditions(0.0, 0.0), False),
        (3e-3, 1e-3, conditions(), True),
        (3e-3, 1e-3, None, True),
        (5e-4, 1e-3, conditions(1.0), False),
        (3e-5, 1e-5, conditions(1.0), False),
    ],
    ids=["busy", "stolen", "quiet", "untold", "no conditions", "faster", "small"],
)
def test_a_large_product_slower_in_parallel_waited_for_cores(together_s, alone_s, beside, waited):
    together, alone = Timing.of((together_s,)), Timing.of((alone_s,))
    assert waited_for_cores(together, alone, beside) is waited


def test_threads_that_waited_are_a_disturbance_even_where_the_system_tells_nothing():
    told = [Conditions(waited_for_cores=waited) for waited in (True, False, None, True, True)]
    found = disturbance(told, threads=2, cores=2)
    assert found.waited_share == 0.75 and not found.is_unusable
    assert str(found) == (
        "measured while threads waited for cores in 75% of the products compared; times may be too long"
    )
    assert disturbance([Conditions(waited_for_cores=False)], threads=2, cores=2) is None
