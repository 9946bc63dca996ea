"""The chart of times over ranks."""

from types import SimpleNamespace

import pytest

from sparsecast.errors import InputError
from sparsecast.records import Configuration
from sparsecast.reports.charts.scaling import scaling


def choice(algorithm, name, ranks, time_s, low_s=None, high_s=None):
    way = Configuration(algorithm, name, name, "rows", ranks, 1)
    forecast = SimpleNamespace(configuration=way, time_s=time_s, low_s=low_s, high_s=high_s)
    return SimpleNamespace(forecast=forecast)


def test_each_algorithm_is_shown_in_its_fastest_format(drawn, rows_of):
    choices = [
        choice("local-1d", "csr", 4, 2e-6, 1e-6, 3e-6),
        choice("local-1d", "coo", 4, 4e-6),
        choice("local-1d", "coo", 16, 1e-6),
        choice("2d", "csr", 4, 5e-5),
    ]
    chart = scaling(choices)
    assert [(row["algorithm"], row["format"], row["ranks"], row["time_s"]) for row in rows_of(chart)] == [
        ("2d", "CSR", 4, 5e-5),
        ("local-1d", "CSR", 4, 2e-6),
        ("local-1d", "COO", 16, 1e-6),
    ]
    svg = drawn(chart)
    assert all(f">{text}<" in svg for text in ("4", "16", "2d", "local-1d", "ranks"))
    drawn(scaling(choices[:1]))  # a single number of ranks


def test_nothing_is_no_chart():
    with pytest.raises(InputError):
        scaling([])
