"""Charts of plans: row blocks, and the time of all products with the conversion."""

import dataclasses

import pytest

from sparsecast.matrices.gallery import gallery
from sparsecast.measuring.timing import Speedup
from sparsecast.records import Forecast
from sparsecast.reports.charts.plans import break_even, plan, totals
from sparsecast.results.placement import Placement, Placements
from sparsecast.results.plan import Plan, PlanCheck, PlannedBlock

CHECK = PlanCheck(3e-6, 5e-6, 9e-6, None, 2e-5, 0.0, Speedup(3.0, None))


@pytest.fixture
def made(recorded):
    csr = recorded.select(format="csr", threads=1, dtype="float64")[0].candidate
    ell = dataclasses.replace(csr, format="ell")
    blocks = (PlannedBlock(0, 39, ell, 1e-6, 1e-5), PlannedBlock(40, 63, csr, 1e-6, 0.0))
    baseline = PlannedBlock(0, 63, csr, 4e-6, 0.0)
    return Plan(blocks, 1000, 2e-6, None, 3e-6, 1e-5, baseline, 5)


def ways(chart, rows_of):
    """Return the marks at the number of products that was asked for, by way."""
    return {row["way"]: row for row in rows_of(chart) if "measured_s" in row}


def test_a_plan_beside_plain_csr_with_and_without_a_check(made, drawn, rows_of):
    A = gallery("poisson2d", n=8)
    chart = plan(A, made)
    blocks = [row for row in rows_of(chart) if "first_row" in row]
    assert [(row["first_row"], row["last_row"], row["format"]) for row in blocks] == [
        (0, 39, "ELL"),
        (40, 63, "CSR"),
    ]
    first, plain = ways(chart, rows_of).values()
    assert (first["products"], first["low_s"]) == (1000, None)
    assert (first["time_s"], first["high_s"]) == pytest.approx((2.01e-3, 3.01e-3))
    assert plain["time_s"] == pytest.approx(4e-3)
    assert first["measured_s"] is None and plain["measured_s"] is None
    checked = ways(plan(A, made, CHECK), rows_of).values()
    assert [row["measured_s"] for row in checked] == pytest.approx([3.02e-3, 5e-3])
    svg = drawn(plan(A, made, CHECK))
    for text in ("ELL", "CSR", "plain CSR", "the plan: ELL + CSR", "products"):
        assert f">{text}<" in svg


def test_a_line_is_conversion_and_products(made, rows_of):
    points = [row for row in rows_of(totals(made, None, None)) if "measured_s" not in row]
    assert {row["products"] for row in points} >= {1, 10_000}
    for row in points:
        start_s, product_s = (0.0, 4e-6) if row["way"] == "plain CSR" else (1e-5, 2e-6)
        assert row["time_s"] == pytest.approx(start_s + row["products"] * product_s)


def test_plain_csr_itself_has_one_line_and_no_break_even(made, rows_of):
    plain = dataclasses.replace(made, blocks=(made.baseline,), break_even_products=0, time_s=4e-6)
    chart = totals(plain, None, None)
    assert len(ways(chart, rows_of)) == 1 and "pays off" not in chart.caption
    assert "pays off after 5 products" in totals(made, None, None).caption


def test_each_device_has_a_line_and_the_best_one_the_measurement(made, drawn, rows_of):
    on_gpu = dataclasses.replace(made.baseline.candidate, device="gpu")
    other = dataclasses.replace(made, baseline=dataclasses.replace(made.baseline, candidate=on_gpu))
    places = Placement("m", "a", other, 100, 1e-4), Placement("m", "b", made, 100)
    placements = Placements(places, ((1, places[1]),))
    chart = totals(other, CHECK, placements)
    first, second = ways(chart, rows_of).values()
    assert (first["way"], second["way"]) == ("a, ELL + CSR", "b, ELL + CSR")
    assert first["start_s"] == pytest.approx(1.1e-4)
    assert first["measured_s"] is not None and second["measured_s"] is None
    assert ">a, ELL + CSR<" in drawn(chart)


def test_break_even_is_relative_to_csr(made, drawn, rows_of):
    csr, ell = made.baseline.candidate, made.blocks[0].candidate
    forecasts = [
        Forecast(csr, 9, 2e-6, None, None, 8, None, 0.0),
        Forecast(ell, 9, 1e-6, None, None, 8, None, 5e-6),
    ]
    ratios = {(row["format"], row["products"]): row["ratio"] for row in rows_of(break_even(forecasts))}
    assert (ratios["ELL", 1], ratios["CSR", 1]) == pytest.approx((3, 1))
    assert ratios["ELL", 1_000_000] == pytest.approx(0.5, rel=1e-4)
    assert rows_of(break_even(forecasts[1:])) == []
    assert ">ELL<" in drawn(break_even(forecasts))
