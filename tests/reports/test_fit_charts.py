"""Charts of models of strips: each grid over lengths and over strips, each forecast over its measurement."""

import numpy as np

from sparsecast.models.strip_lines import Grid, RatioLines
from sparsecast.reports.charts.chart import svg
from sparsecast.reports.charts.fits import Fit, fits, forecasts

LENGTHS, STRIPS = (4.0, 16.0, 64.0), (1.0, 5.0, 10.0)


def test_a_grid_is_shown_over_lengths_and_over_strips_with_its_lines():
    points = np.array([(length, strips) for length in LENGTHS for strips in STRIPS])
    grid = Grid(*points.T, 1e-6 * (1 + points.prod(axis=1)))
    lines = RatioLines.fit(grid)
    assert lines is not None
    chart = fits("fits", {"CSR": {"normal": Fit.of(grid, lines), "uniform": Fit.of(grid, lines)}})
    over_lengths, over_strips = (panel["data"]["values"] for panel in chart.spec["concat"])
    for rows, places in ((over_lengths, LENGTHS), (over_strips, STRIPS)):
        assert [row["x"] for row in rows if row["who"] == "normal"] == list(places)
        assert {row["who"] for row in rows} == {"normal", "uniform"}
        assert all(row["fitted_s"] > 0 for row in rows)
    assert "<svg" in svg(chart)


def test_a_direction_with_one_point_is_left_out():
    grid = Grid(np.ones(3), np.array(STRIPS), np.array(STRIPS))
    chart = fits("fits", {"COO": {"fit": Fit(grid, lambda lengths, strips: strips)}})
    [panel] = chart.spec["concat"]
    assert [row["x"] for row in panel["data"]["values"]] == list(STRIPS)


def test_forecasts_lie_over_what_was_measured():
    chart = forecasts("forecasts", {"CSR": [("a", "guo", 1e-4, 2e-4), ("b", "guo", 1e-3, 1e-3)]})
    [panel] = chart.spec["concat"]
    right, points = (layer["data"]["values"] for layer in panel["layer"])
    assert [row["forecast_s"] for row in points] == [2e-4, 1e-3]
    assert all(row["measured_s"] == row["forecast_s"] for row in right)
    assert "<svg" in svg(chart)
