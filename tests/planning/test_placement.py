"""Where to do the products: what is counted, and from when on a device pays."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsecast.planning.placement import Placement, compare
from sparsecast.planning.plan import Plan
from sparsecast.planning.row_blocks import PlannedBlock
from sparsecast.records import Candidate

times = st.floats(1e-7, 1e-1)
costs = st.floats(0.0, 10.0)


def placement(device, time_s, convert_s, transfer_s, iterations=100):
    candidate = Candidate("csr", "rows", device, "float64", 32, 1)
    block = PlannedBlock(0, 9, candidate, time_s, convert_s)
    plan = Plan((block,), iterations, time_s, None, None, convert_s, block, None)
    return Placement(f"a {device}", plan, transfer_s)


def after(found, iterations):
    """The same placement for another number of products."""
    return dataclasses.replace(found, plan=dataclasses.replace(found.plan, iterations=iterations))


def test_all_that_travels_is_counted():
    gpu = placement("cuda", 1e-3, 0.5, 0.01)
    assert gpu.before_s == 0.51
    assert gpu.total_s == pytest.approx(0.5 + 0.01 + 100 * 1e-3)
    assert gpu.travelling_s == pytest.approx(0.5 + 100 * (1e-3 + 0.01))


def test_a_device_pays_once_its_products_have_saved_what_it_takes_to_get_there():
    host, gpu = placement("cpu", 5e-3, 0.1, 0.0), placement("cuda", 1e-3, 0.5, 0.01)
    found = compare([host, gpu])
    assert found.best is host and found.fastest is gpu, "100 products save 0.4 s and cost 0.41 s"
    assert found.break_even_iterations == 103
    assert compare([after(host, 103), after(gpu, 103)]).best.plan.device == "cuda"


def test_one_place_has_nothing_to_break_even_with():
    assert compare([placement("cpu", 1e-3, 0.0, 0.0)]).break_even_iterations is None


@given(times, costs, times, costs, costs)
def test_break_even_is_the_least_number_of_products(host_s, host_convert_s, gpu_s, gpu_convert_s, transfer_s):
    host, gpu = (
        placement("cpu", host_s, host_convert_s, 0.0),
        placement("cuda", gpu_s, gpu_convert_s, transfer_s),
    )
    found = compare([host, gpu])
    count, fastest = found.break_even_iterations, found.fastest
    other = gpu if fastest is host else host
    assert count >= 1
    assert after(fastest, count).total_s <= after(other, count).total_s * (1 + 1e-9)
    if count > 1:
        assert after(fastest, count - 1).total_s >= after(other, count - 1).total_s * (1 - 1e-9)
