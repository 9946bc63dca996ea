"""Numbers and counts as people read them."""

import pytest

from sparsecast.system import texts


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (0.0, "0 ns"),
        (3.2e-10, "0.32 ns"),
        (1e-6, "1 us"),
        (1.2345e-3, "1.23 ms"),
        (9.994e-7, "999 ns"),
        (9.996e-7, "1 us"),
        (0.99949, "999 ms"),
        (0.9997, "1 s"),
        (999.6, "1,000 s"),
        (123456.0, "123,456 s"),
    ],
)
def test_a_time_has_three_digits_and_the_unit_that_suits(seconds, text):
    assert texts.time(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1000, "1 kB"), (999_600, "1 MB"), (1_234_567, "1.23 MB"), (2e12, "2,000 GB")],
)
def test_a_size_has_three_digits_and_the_unit_that_suits(count, text):
    assert texts.size(count) == text


@pytest.mark.parametrize(
    ("joules", "text"), [(None, "not measured"), (2.5, "2.5 J"), (0.9996, "1 J"), (3.14e-5, "31.4 uJ")]
)
def test_energies_have_three_digits_and_a_unit(joules, text):
    assert texts.energy(joules) == text


def test_one_and_many():
    assert texts.counted(1, "product") == "1 product"
    assert texts.counted(1000, "product") == "1,000 products"
    assert texts.counted(2, "matrix") == "2 matrices"


def test_what_is_unknown_is_no_number():
    assert texts.interval(1.0, None) == "unknown"
    assert texts.percent(None) == texts.signed_percent(None) == texts.percent_number(None) == "-"
    assert texts.energy_interval(1.0, None, None) == "1 J"


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [("bytes_per_s", 3.05e12, "3,050 GB/s"), ("stored_bytes", 4096, "4.1 kB"), ("time_s", 2e-6, "2 us")],
)
def test_a_value_has_the_unit_at_the_end_of_its_key(key, value, text):
    assert texts.shown(key, value) == text
