"""Charts of times: each row of a result is a mark, in the order of its time."""

import dataclasses
from types import SimpleNamespace

import pytest

from sparsecast.errors import InputError
from sparsecast.records import Candidate, Conditions, Configuration, DistributedRecord, Forecast, Parameters
from sparsecast.reports.charts.intervals import (
    forecast_rows,
    machine_rows,
    measured_rows,
    rank_rows,
    refuse_many,
    row,
    times,
)
from sparsecast.results.cluster import MeasuredProduct
from sparsecast.results.placement import Placement


def forecast(candidate, time_s, low_s=None, high_s=None, **more):
    return Forecast(candidate, 1000, time_s, low_s, high_s, 8000, None, None, **more)


@pytest.fixture
def candidate(recorded):
    return recorded.select(format="csr", threads=1, dtype="float64")[0].candidate


def test_forecasts_are_sorted_and_told_apart_where_only_parameters_differ(candidate):
    bcsr = dataclasses.replace(candidate, format="bcsr", kernel="k")
    items = [
        forecast(dataclasses.replace(bcsr, parameters=Parameters({"block": block})), time_s)
        for block, time_s in (((4, 2), 3.0), ((2, 2), 1.0))
    ]
    items += [
        forecast(candidate, 2.0, 1.5, 2.5),
        forecast(dataclasses.replace(candidate, format="ell"), 0.5, 0.45, 0.55, basis="measured"),
        forecast(dataclasses.replace(candidate, format="dia"), 4.0, basis="corrected"),
    ]
    rows = forecast_rows(items)
    assert [row["value"] for row in rows] == [0.5, 1.0, 2.0, 3.0, 4.0]
    assert rows[0] == row(f"ELL, {candidate.kernel}", "ELL", "measured", 0.5, 0.45, 0.55)
    assert rows[1]["label"] == "BCSR, k, block 2x2"
    assert rows[2] == row(f"CSR, {candidate.kernel}", "CSR", "forecast", 2.0, 1.5, 2.5)
    assert rows[-1]["label"].endswith("(corrected)")


def test_measurements_without_a_forecast_and_at_several_frequencies(recorded, candidate):
    template = recorded.select(format="csr", threads=1, dtype="float64")[0]
    slow, fast = (
        dataclasses.replace(template, time_s=time_s, noise=None, conditions=Conditions(frequency_hz=hz))
        for time_s, hz in ((2.0, 1.2e9), (1.0, 2.4e9))
    )
    other = dataclasses.replace(
        template, candidate=dataclasses.replace(candidate, format="ell"), time_s=1.5, noise=0.5
    )
    rows = measured_rows([slow, other, fast], {candidate: forecast(candidate, 3.0, None, 4.0)})
    assert [(row["what"], row["value"], row["low"], row["high"]) for row in rows] == [
        ("forecast", 3.0, None, 4.0),
        ("measured", 1.0, None, None),
        ("measured", 1.5, 1.0, 2.25),
        ("forecast", 3.0, None, 4.0),
        ("measured", 2.0, None, None),
    ]
    assert rows[0]["label"].endswith(", 2.40 GHz") and rows[4]["label"].endswith(", 1.20 GHz")


def test_products_on_ranks_are_sorted_with_the_forecasts_that_there_are():
    ways = [Configuration(name, "csr", "coo", "rows", 4, 1) for name in ("2d", "local-1d")]
    first, second = (
        MeasuredProduct(DistributedRecord(way, "m", 9, {}, (), time_s, None, None, None, False, "", ""), 0.0)
        for way, time_s in zip(ways, (2.0, 1.0), strict=True)
    )
    expected = SimpleNamespace(time_s=3.0, low_s=None, high_s=4.0)
    assert rank_rows([dataclasses.replace(first, forecast=expected), second]) == [
        row("local-1d, CSR + COO, rows", "local-1d", "measured", 1.0, None, None),
        row("2d, CSR + COO, rows", "2d", "forecast", 3.0, None, 4.0),
        row("2d, CSR + COO, rows", "2d", "measured", 2.0, None, None),
    ]


def test_times_are_drawn_with_what_they_have(drawn, rows_of):
    rows = [
        row("A $b_{", "CSR", "forecast", 2e-6, 1e-6, None),
        row("A $b_{", "CSR", "measured", 3e-6, None, None),
        row("<only> forecast", "ELL", "forecast", 1e-5, 9e-6, 1.1e-5),
        row("only measured", "of a plug-in", "measured", 2e-5, 1e-6, 2e-4),
    ]
    alone = times({"matrix": rows, "empty": []}, "one product")
    assert rows_of(alone) == rows
    svg = drawn(alone)
    for text in ("A $b_{", "&lt;only&gt; forecast", "only measured", "one product", "forecast", "measured"):
        assert f">{text}<" in svg
    assert "empty" not in svg
    both = times({"first": rows, "second": rows[:1]}, "one product")
    assert rows_of(both) == [*rows, rows[0]]
    assert ">second<" in drawn(both)


def test_machines_keep_their_order():
    product = Forecast(Candidate("csr", "rows", "cpu", "float64", 32, 1), 9, 0.2, 0.1, None, 8, None, 0.0)
    compared = [
        Placement("m", name, dataclasses.replace(product, time_s=time_s), 10)
        for name, time_s in (("a", 0.2), ("b", 0.1))
    ]
    rows = [(row["label"], row["value"], row["low"], row["high"]) for row in machine_rows(compared)]
    assert rows == [("a, CSR", 2.0, 1.0, None), ("b, CSR", 1.0, 1.0, None)]


def test_figures_of_nothing_and_of_too_much_are_refused():
    with pytest.raises(InputError):
        times({"empty": []}, "")
    with pytest.raises(InputError):
        refuse_many(1000)
