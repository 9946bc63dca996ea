"""Where to do the products: what is counted, and from when on a device pays."""

import dataclasses

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sparsecast.errors import InputError
from sparsecast.planning.placement import prices_of, ranked
from sparsecast.records import Candidate, Forecast
from sparsecast.results.placement import Placement
from sparsecast.results.plan import Plan, PlannedBlock
from sparsecast.system.texts import time

times = st.floats(1e-7, 1e-1)
costs = st.floats(0.0, 10.0)


def candidate(device):
    return Candidate("csr", "rows", device, "float64", 32, 1)


def placement(device, time_s, convert_s, transfer_s, products=100, plain=None):
    """A placement, of a plan that is plain CSR or takes `plain` seconds a product and to convert to."""
    block = PlannedBlock(0, 9, candidate(device), time_s, convert_s)
    baseline = PlannedBlock(0, 9, candidate(device), *plain) if plain else block
    plan = Plan((block,), products, time_s, None, None, convert_s, baseline, None)
    return Placement("m", f"a {device}", plan, products, transfer_s)


def after(found, iterations):
    """The same placement for another number of products."""
    return dataclasses.replace(found, products=iterations)


def test_all_that_travels_is_counted():
    gpu = placement("cuda", 1e-3, 0.5, 0.01)
    assert gpu.before_s == 0.51
    assert gpu.total_s == pytest.approx(0.5 + 0.01 + 100 * 1e-3)
    assert gpu.travelling_s == pytest.approx(0.5 + 100 * (1e-3 + 0.01))


def test_a_device_pays_once_its_products_have_saved_what_it_takes_to_get_there():
    host, gpu = placement("cpu", 5e-3, 0.1, 0.0), placement("cuda", 1e-3, 0.5, 0.01)
    found = ranked([host, gpu])
    assert found.best.device == "cpu" and found.fastest.device == "cuda", (
        "100 products save 0.4 s and cost 0.41 s"
    )
    assert found.break_even_products == 103
    assert ranked([after(host, 103), after(gpu, 103)]).best.device == "cuda"


def test_plain_csr_is_what_few_products_are_compared_with():
    host = placement("cpu", 5e-3, 10.0, 0.0, plain=(6e-3, 0.0))
    found = ranked([host, placement("cuda", 1e-3, 0.5, 0.0)])
    assert found.break_even_products == 100, "0.5 s to get there, 5 ms saved by every product"


def test_a_few_products_for_which_it_is_best_too_are_no_break_even():
    host = placement("cpu", 2.0, 30.0, 0.0, plain=(20.0, 0.0))
    gpu = placement("cuda", 1.0, 1000.0, 0.0, plain=(5.0, 10.0))
    assert best_s(gpu, 1) < best_s(host, 1) and best_s(gpu, 20) > best_s(host, 20)
    assert ranked([host, gpu]).break_even_products == 970, "1000 - 30 s more before, 1 s saved by each"


def test_one_place_has_nothing_to_break_even_with():
    assert ranked([placement("cpu", 1e-3, 0.0, 0.0)]).break_even_products is None


def best_s(found, iterations):
    """Seconds of so many products, in the plan's way or in plain CSR."""
    baseline, transfer_s = found.plan.baseline, found.transfer_s
    plain_s = baseline.convert_s + transfer_s + iterations * baseline.time_s
    return min(after(found, iterations).total_s, plain_s)


@given(st.lists(st.tuples(times, costs, costs), min_size=1, max_size=6), st.integers(1, 10**7))
def test_of_several_places_each_is_the_best_from_its_number_of_products_on(places, count):
    found = ranked([placement(f"{n}", *each) for n, each in enumerate(places)])
    firsts = [first for first, _ in found.best_from]
    assert firsts[0] == 1 and firsts == sorted(set(firsts))
    best = [place for first, place in found.best_from if first <= count][-1]
    least_s = min(best_s(each, count) for each in found.placements)
    assert best_s(best, count) <= least_s * (1 + 1e-9)


def test_unknown_conversions_and_copies_are_marked_and_prices_are_of_nodes_and_hours():
    product = Forecast(candidate("hip"), 9, 1e-3, 1e-4, 2e-3, 8, 0.5, None)
    far = Placement("m", "far", product, 1000, None, 3600.0)
    assert (far.total_s, far.price) == (1.0, (1.0, pytest.approx(0.1), 2.0)) and not far.is_known_before
    assert far.energy == (500.0, None, None)
    here = placement("cpu", 1.0, 0.0, 0.0, products=1000)
    found = ranked([far, here], {"third": "it has no records"})
    assert (found.best, found.comparable, found.best_from) == (far, [here], ((1, here),))
    assert found.break_even_products is None, "what far takes before the first product is unknown"
    assert f"take less than {time(999.0)}" in " ".join(found.sentences())
    below = " ".join(found.table().below)
    assert "are not counted" in below and "it has no records" in below


@pytest.mark.parametrize("text", ["a", "a=2", "a=x/h", "a=-1/h", "=2/h", "a=inf/h"])
def test_prices_that_cannot_be(text):
    assert prices_of(["a=b=2/h"]) == {"a=b": 2.0}
    with pytest.raises(InputError):
        prices_of([text])


@example(1e-7, 7.0, 1.0625, 1e-7, 5.0, 4.0, 1.0)
@given(times, costs, st.floats(1, 3), times, costs, costs, st.floats(1, 3))
def test_break_even_is_the_number_from_which_on_the_fastest_is_best(
    host_s, host_convert_s, slower, gpu_s, gpu_convert_s, transfer_s, slower_there
):
    host = placement("cpu", host_s, host_convert_s, 0.0, plain=(slower * host_s, 0.0))
    plain_there = slower_there * gpu_s, gpu_convert_s / 2
    gpu = placement("cuda", gpu_s, gpu_convert_s, transfer_s, plain=plain_there)
    found = ranked([host, gpu])
    count, fastest = found.break_even_products, found.fastest
    other = gpu if fastest.device == "cpu" else host
    if count is None:
        endless = 10**18  # no conversion or copy counts any more: the fastest is not faster than the other
        assert best_s(fastest, endless) >= best_s(other, endless) * (1 - 1e-9)
        return
    assert count >= 1
    for as_many in (count, count + 1, 2 * count, 10 * count, 1000 * count):
        assert best_s(fastest, as_many) <= best_s(other, as_many) * (1 + 1e-9)
    if count > 1:
        assert best_s(fastest, count - 1) >= best_s(other, count - 1) * (1 - 1e-9)
