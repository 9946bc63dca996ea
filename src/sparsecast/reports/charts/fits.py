"""Charts of the lines that models of strips fit, and of their forecasts over what was measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparsecast.models.fitting import Floats
from sparsecast.models.strip_lines import Grid, RatioLines, SlopeLines
from sparsecast.reports.charts.chart import Chart, Spec, axis, layer, look, panels, tooltip

_SIZE: Spec = {"width": 260, "height": 200}


@dataclass(frozen=True, slots=True)
class Fit:
    """Times of benchmark matrices, and what is fitted to them."""

    grid: Grid
    seconds: Callable[[Floats, Floats], Floats]  # returns the fitted times, from non-zeros a row and strips

    @classmethod
    def of(cls, grid: Grid, lines: RatioLines | SlopeLines) -> Fit:
        """Return the lines that a grid was fitted by."""
        return cls(grid, lambda nnz_per_row, strips: lines.terms(nnz_per_row, strips)["time_s"])


def fits(name: str, kernels: Mapping[str, Mapping[str, Fit]]) -> Chart:
    """Return time over non-zeros a row, and over strips, for each kernel; points are measured.

    `kernels` holds for each kernel what is fitted to it, by name.
    """
    charts = []
    for kernel, named in kernels.items():
        first = next(iter(named.values())).grid
        strips = first.richest_strips()
        lengths, counts = np.unique(first.nnz_per_row, return_counts=True)
        length = float(lengths[counts == counts.max()].min())
        of_length = f"{kernel}: {length:g} non-zeros a row"
        over = (
            ("nnz_per_row", "non-zeros a row", "strips", strips, f"{kernel}: {strips:g} strips"),
            ("strips", "strips", "nnz_per_row", length, kernel if len(lengths) == 1 else of_length),
        )
        for x, title, held, at, caption in over:
            rows = []
            for who, fit in named.items():
                chosen = fit.grid.where(getattr(fit.grid, held) == at)
                fitted_s = fit.seconds(chosen.nnz_per_row, chosen.strips)
                columns = np.column_stack([getattr(chosen, x), chosen.time_s, fitted_s])
                keys = ("x", "measured_s", "fitted_s")
                rows += [{**dict(zip(keys, row, strict=True)), "who": who} for row in columns.tolist()]
            if len({row["x"] for row in rows}) < 2:
                continue
            looks = look("who", [row["who"] for row in rows])
            shown = tooltip({"who": "rows"}, x="x", measured_s="measured", fitted_s="fitted")
            places = {
                "x": axis("x", title, [row["x"] for row in rows]),
                "y": axis("measured_s", "one product", [row["measured_s"] for row in rows], "s"),
            }
            point = layer({"type": "point", "clip": True}, {**places, **looks, "tooltip": shown})
            fitted = {**places, "y": {**places["y"], "field": "fitted_s"}, "color": looks["color"]}
            layers = [layer({"type": "line", "clip": True}, fitted), point]
            charts.append(Chart("fit", caption, {"data": {"values": rows}, "layer": layers, **_SIZE}))
    return panels(name, "", charts, 2)


def forecasts(name: str, kernels: Mapping[str, Sequence[tuple[str, str, float, float]]]) -> Chart:
    """Return forecasts over measured times for each kernel, with the line on which they would be right.

    `kernels` holds for each kernel the matrix, the model, the measured seconds and those forecast.
    """
    keys, charts = ("matrix", "model", "measured_s", "forecast_s"), []
    shown = tooltip({"matrix": "matrix", "model": "model"}, measured_s="measured", forecast_s="forecast")
    for kernel, found in kernels.items():
        rows: list[dict[str, Any]] = [dict(zip(keys, row, strict=True)) for row in found]
        times = [row[key] for row in rows for key in keys[2:]]
        places = {
            "x": axis("measured_s", "measured", times, "s", is_log=True),
            "y": axis("forecast_s", "forecast", times, "s", is_log=True),
        }
        ends = [dict.fromkeys(keys[2:], end) for end in (min(times), max(times))]
        points = {**places, **look("model", [row["model"] for row in rows]), "tooltip": shown}
        layers = [layer({"type": "line", "color": "grey"}, places, ends), layer("point", points, rows)]
        charts.append(Chart("forecasts", kernel, {"layer": layers, **_SIZE}))
    return panels(name, "", charts, 2)
