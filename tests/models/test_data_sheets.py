"""Machines from data sheets: what must hold of scaled times whatever was learned, and of their intervals."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparsecast.errors import InputError, ProfileError
from sparsecast.machines.data_sheet import DataSheet, Made, quantity
from sparsecast.machines.machine import Machine
from sparsecast.machines.profile import Profile, find_profile
from sparsecast.models.data_sheets import Law, Products, learned, made_profile, sheet_of_measured

SHEET = DataSheet(200e9, 32, 2.5e9, 2**25, 2**27)
laws = st.builds(Law, st.floats(0.05, 1), st.floats(0, 1), st.floats(0, 1))
sheets = st.builds(
    DataSheet,
    st.floats(1e9, 1e13),
    st.integers(1, 512),
    st.floats(1e8, 1e10),
    st.integers(0, 2**28),
    st.integers(0, 2**30),
)


@st.composite
def products(draw):
    time_s = np.array(draw(st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=8)))
    sizes = draw(st.lists(st.integers(1, 2**34), min_size=len(time_s), max_size=len(time_s)))
    return Products(time_s, np.full(len(time_s), time_s.min()), np.array(sizes, dtype=float))


@given(products(), laws, sheets)
def test_a_machine_like_itself_takes_as_long(known, law, sheet):
    assert law.scaled(known, sheet, sheet) == pytest.approx(known.time_s)


@given(products(), laws, sheets, sheets)
def test_no_better_figure_makes_a_product_longer_and_none_shorter_than_its_start(known, law, like, sheet):
    times = law.scaled(known, like, sheet)
    assert np.all(np.isfinite(times)) and np.all(times >= known.start_s * (1 - 1e-12))
    for better in (
        dataclasses.replace(sheet, bandwidth_bytes_per_s=2 * sheet.bandwidth_bytes_per_s),
        dataclasses.replace(sheet, cores=2 * sheet.cores),
        dataclasses.replace(sheet, frequency_hz=2 * sheet.frequency_hz),
        dataclasses.replace(sheet, l2_bytes=2 * sheet.l2_bytes),
        dataclasses.replace(sheet, l3_bytes=2 * sheet.l3_bytes),
    ):
        assert np.all(law.scaled(known, like, better) <= times * (1 + 1e-12))


def test_what_memory_bounds_goes_with_the_bandwidth_and_the_rest_with_the_cores():
    law, size = Law(share_of_peak=1.0, computing=1.0, share_kept=1.0), 10e9
    beyond_s = (size - SHEET.cache_bytes) / SHEET.bandwidth_bytes_per_s
    known = Products(np.array([beyond_s, beyond_s + 1.0]), np.zeros(2), np.array([size, size]))
    twice = dataclasses.replace(SHEET, bandwidth_bytes_per_s=2 * SHEET.bandwidth_bytes_per_s)
    assert law.scaled(known, SHEET, twice) == pytest.approx([beyond_s / 2, beyond_s / 2 + 1])
    cores = dataclasses.replace(SHEET, cores=2 * SHEET.cores)
    assert law.scaled(known, SHEET, cores) == pytest.approx([beyond_s, beyond_s + 0.5])
    # A matrix that lay in the caches comes from memory where these are too small for it.
    small = Products(np.array([1e-4]), np.zeros(1), np.array([1e8]))
    none = dataclasses.replace(SHEET, l2_bytes=0, l3_bytes=0)
    assert law.scaled(small, SHEET, none) == pytest.approx([1e-4 + 1e8 / SHEET.bandwidth_bytes_per_s])


def test_intervals_are_wider_and_still_hold_the_forecast():
    made = Made("known", 3, (0.0, 2.0), (-1.0, -0.1), (0.5, 0.2))
    low, high = made.widened(1e-3, 1e-3, 0.9e-3, 1.2e-3)
    assert math.log(low / 1e-3) == pytest.approx(-math.hypot(1.0, math.log(0.9)))
    assert math.log(high / 1e-3) == pytest.approx(math.hypot(0.5, math.log(1.2)))
    far_low, far_high = made.widened(1.0, 1e-3, 0.9, 1.2)
    assert low / 1e-3 < far_low < 0.9 and 1.2 < far_high < high / 1e-3


@pytest.mark.parametrize("kind", ["gpu", "cpu"])
def test_what_is_shipped_is_of_machines_that_were_left_out(kind):
    found = learned(kind)
    assert len(found.machines) >= 3 and list(found.over_start) == sorted(found.over_start)
    assert all(low < high for low, high in zip(found.low, found.high, strict=True))


def test_a_made_profile_is_marked_and_counts_as_measured_nowhere():
    like = find_profile("nvidia-a100")
    made = made_profile("next", like, dataclasses.replace(like.machine.sheet, cores=200), learned("gpu"))
    assert (made.name, made.machine.made.like, made.machine.gpu.multiprocessors) == (
        "next",
        "nvidia-a100",
        200,
    )
    assert {record.suite for record in made.records} == {"data sheet"}
    assert {record.energy_j for record in made.records} == {None}
    again = Machine.from_dict(made.machine.to_dict())
    assert again == made.machine
    for profile in (made, Profile(dataclasses.replace(like.machine, sheet=None), like.records)):
        with pytest.raises(ProfileError):
            sheet_of_measured(profile)


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("400e9", "B/s", 400e9),
        ("400GB/s", "B/s", 400e9),
        ("3.35 TB/s", "B/s", 3.35e12),
        ("1MiB", "B", 2**20),
        ("1m", "B", 1e6),
        ("2.4GHz", "Hz", 2.4e9),
        ("2.4g", "Hz", 2.4e9),
    ],
)
def test_figures_have_prefixes_and_units(text, unit, value):
    assert quantity("figure", text, unit) == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "fast", "400GHz", "0", "-3e9", "1.2.3", "inf", "1e999", "nan", "3 x"])
def test_what_is_no_figure_is_refused(text):
    with pytest.raises(InputError):
        quantity("bandwidth", text, "B/s")
