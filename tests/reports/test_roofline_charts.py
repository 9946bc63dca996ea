"""Charts of machines: bandwidths in order, products under their roofs."""

import dataclasses

import pytest

from sparsecast.errors import InputError
from sparsecast.records import Bandwidth, Forecast, product_flops
from sparsecast.reports.charts.rooflines import bandwidths, forecast_points, machine, roofline


@pytest.fixture
def streams():
    return tuple(
        Bandwidth("read", "cpu", 1, count, count / speed, noise, "", "")
        for count, speed, noise in ((1 << 24, 1e9, None), (1 << 14, 8e9, 0.25), (1 << 19, 9e9, 0.1))
    )


def test_a_machine_shows_its_bandwidths_in_order_and_its_products(recorded, streams, drawn, rows_of):
    profile = dataclasses.replace(recorded, bandwidths=streams)
    lines = [row for row in rows_of(bandwidths(profile)) if "stream" in row]
    assert [row["bytes"] for row in lines] == [1 << 14, 1 << 19, 1 << 24]
    assert [row["speed"] for row in lines] == pytest.approx([8e9, 9e9, 1e9])
    assert [row["low"] for row in lines] == [pytest.approx(6.4e9), pytest.approx(9e9 / 1.1), None]
    points = [row for row in rows_of(machine(profile)) if "what" in row]
    dtype = {record.candidate.dtype for record in profile.records}
    measured = {
        (r.candidate.format.upper(), product_flops(r.nnz, r.candidate.dtype) / r.time_s)
        for r in profile.records
        if r.regime == "warm" and r.nnz and r.candidate.dtype in dtype
    }
    assert points and {(row["format"], row["speed"]) for row in points} <= measured
    svg = drawn(machine(profile))
    for text in ("cpu 1 thread read", "CSR", "L2", "bandwidth", "FLOP per byte"):
        assert f">{text}<" in svg


def test_a_machine_without_anything_is_refused_and_with_one_of_both_has_one_chart(recorded, streams, drawn):
    empty = dataclasses.replace(recorded, records=(), bandwidths=())
    with pytest.raises(InputError):
        machine(empty)
    drawn(machine(dataclasses.replace(recorded, bandwidths=())))
    drawn(machine(dataclasses.replace(empty, bandwidths=streams)))


def test_forecasts_and_measurements_under_the_roofs(recorded, streams, drawn, rows_of):
    record = recorded.select(format="csr", threads=1, dtype="float64")[0]
    forecast = Forecast(record.candidate, 1000, 1e-6, None, None, 8000, None, None)
    points = forecast_points([forecast], {"csr": dataclasses.replace(record, time_s=2e-6)}, 1000)
    assert [(row["what"], row["speed"]) for row in points] == [("forecast", 2e9), ("measured", 1e9)]
    assert {row["intensity"] for row in points} == {0.25}
    chart = roofline(points, streams, "")
    ends = [row for row in rows_of(chart) if "array" in row]
    assert all(
        row["speed"] / row["intensity"] == pytest.approx(s.bandwidth_bytes_per_s)
        for row, s in zip(ends[::2], streams, strict=False)
    )
    drawn(chart)
    drawn(roofline(points, (), ""))
