"""Charts of an evaluation: forecasts against measurements, and the quality of the models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sparsecast.errors import InputError
from sparsecast.models.fitting import INTERVAL_SHARE
from sparsecast.reports.charts.chart import (
    COLOURS,
    GREY,
    LINE,
    WIDTH,
    Chart,
    Spec,
    axis,
    dot,
    format_look,
    layer,
    panels,
    tooltip,
    zoom,
)
from sparsecast.reports.charts.intervals import intervals, row
from sparsecast.results.evaluation import ErrorScore, Evaluation, EvaluationRow, ModelScore

#: Pixels of a square chart alone, and of one among several; number of columns.
_SQUARE, _SMALL_SQUARE, _COLUMNS = 460, 280, 3

#: Greatest number of points of a page; beyond it, every second, third... is drawn, in order of time.
_MOST_POINTS = 2000

#: An axis of ratios reaches at least so many times above and below 1.
_LEAST_REACH = 2.0

#: Least percentage of an error on a logarithmic axis.
_LEAST_ERROR = 0.01

_UNITS = {"time": "s", "energy": "J"}


def noise_band(score: ModelScore) -> tuple[float | None, str]:
    """Return the expected difference of a perfect forecast from the measurements, and its origin.

    90 % of the repeated measurements differed by less; without such, it is the median noise of the Records.
    """
    if score.repeat_p90 is not None:
        return score.repeat_p90, "repeat noise, 90 %"
    return score.median_noise, "median noise"


def agreements(evaluation: Evaluation) -> Chart:
    """Return a panel for each model, sorted by its error."""
    charts = []
    for name, score in evaluation.models.items():
        chart = agreement([row for row in evaluation.rows if row.model == name], score, _SMALL_SQUARE)
        errors = f"median error {100 * score.median_error:.1f} %, 90 % below {100 * score.p90_error:.0f} %"
        noise, noise_name = noise_band(score)
        band = "" if noise is None else f"; band: {noise_name}"
        charts.append(replace(chart, caption=f"{name}: {errors}{band}"))
    if not charts:
        raise InputError("a figure would show nothing: expected a forecast; evaluate other matrices")
    return panels("agreement", "Above 1 the product was faster than forecast", charts, _COLUMNS)


def agreement(rows: Sequence[EvaluationRow], score: ModelScore, pixels: int = _SQUARE) -> Chart:
    """Return forecast over measurement of at least one product, by bytes moved; a band has the noise."""
    step = -(-len(rows) // _MOST_POINTS)
    shown = sorted(rows, key=lambda row: row.measured)[::step]
    unit = _UNITS[score.quantity]
    points: list[dict[str, Any]] = [
        {
            "matrix": row.matrix,
            "format": row.estimate.candidate.format.upper(),
            "bytes": row.record.traffic_bytes,
            "ratio": row.estimate.value / row.measured,
            "forecast": row.estimate.value,
            "measured": row.measured,
            "error": f"{100 * row.error:+.1f} %",
        }
        for row in shown
    ]
    moved = [point["bytes"] for point in points]
    farthest = max(_LEAST_REACH, *(max(point["ratio"], 1 / point["ratio"]) for point in points))
    noise, noise_name = noise_band(score)
    factor = 1 + (noise or 0)
    ends = [min(moved) / 1.5, max(moved) * 1.5]
    line = [{"at": end, "right": 1, "low": 1 / factor, "high": factor} for end in ends]
    x = axis("bytes", "bytes that a product moves", ends, "B", is_log=True)
    y = axis("ratio", "forecast over measurement", [1 / farthest, farthest], is_log=True)
    for each, domain in ((x, ends), (y, [1 / farthest, farthest])):
        each["scale"] = {**each["scale"], "domain": domain, "clamp": False}
    at = {**x, "field": "at"}
    band = {"x": at, "y": {**y, "field": "low"}, "y2": {"field": "high"}}
    texts = {"matrix": "matrix", "format": "format", "error": "error"}
    numbers = {"forecast": f"forecast, {unit}", "measured": f"measured, {unit}", "bytes": "bytes"}
    looks = format_look(point["format"] for point in points)
    of_points = {"x": x, "y": y, **looks, "tooltip": tooltip(texts, **numbers)}
    right = {"x": at, "y": {**y, "field": "right"}}
    layers = [
        layer({"type": "area", "color": GREY, "opacity": 0.35, "clip": True}, band, line),
        layer({"type": "line", "color": GREY, "strokeWidth": 1}, right, line),
        {**layer({**dot(45), "opacity": 0.8}, of_points, points), "params": zoom()},
    ]
    caption = (
        "Each point is a format of a matrix that the model had not seen: on the line the forecast is right, "
        "above it the product was faster."
    )
    if noise is not None:
        caption += (
            f" Grey band, {100 * noise:.1f} %: how much measurements of the same differ ({noise_name})."
        )
    if step > 1:
        caption += f" {len(shown):,} of {len(rows):,} points are drawn."
    return Chart("agreement", caption, {"layer": layers, "width": pixels, "height": pixels})


def errors(name: str, caption: str, scores: Mapping[str, ErrorScore]) -> Chart:
    """Return the median and the ninetieth percentile of the errors of models or formats, by name."""
    rows = []
    for label, score in scores.items():
        median, p90 = (max(100 * error, _LEAST_ERROR) for error in (score.median_error, score.p90_error))
        noise = None if score.median_noise is None else 100 * score.median_noise
        marks = row(label, "error", "error", median, median, p90)
        rows.append({**marks, "noise": noise, "forecasts": f"{score.forecasts:,}"})
    return intervals(
        name, caption, rows, "error of the forecasts", "%", {"forecasts": "forecasts"}, noise="noise, %"
    )


def regret(scores: Mapping[str, ModelScore]) -> Chart:
    """Return the loss of the models' choices against the fastest measured format."""
    values = [{"name": name, "regret": 100 * score.regret} for name, score in scores.items()]
    caption = (
        "Regret: how much longer the format takes that a model chooses than the fastest one, in the mean."
    )
    encoding = {"x": axis("regret", "regret, %"), "tooltip": tooltip({"name": "model"}, regret="regret, %")}
    return _bars("regret", caption, values, [], encoding)


def coverage(scores: Mapping[str, ModelScore]) -> Chart:
    """Return the shares of the measurements within the intervals of the models."""
    values = [
        {"name": name, "held": 100 * score.coverage, "width": 100 * (score.mean_width or 0.0)}
        for name, score in scores.items()
        if score.coverage is not None
    ]
    nominal = 100 * INTERVAL_SHARE
    caption = f"Measurements within the interval, which is meant to hold {nominal:.0f} % (line)."
    mark = {"type": "rule", "color": GREY, "strokeDash": [5, 3], "strokeWidth": 2}
    line = layer(mark, {"x": {"datum": nominal}})
    encoding = {
        "x": {**axis("held", "measurements within the interval, %"), "scale": {"domain": [0, 100]}},
        "tooltip": tooltip({"name": "model"}, held="held, %", width="mean width, %"),
    }
    return _bars("coverage", caption, values, [line], encoding)


def _bars(
    name: str, caption: str, values: Sequence[dict[str, Any]], more: Sequence[Spec], encoding: Spec
) -> Chart:
    y = {"field": "name", "type": "nominal", "sort": None, "title": None}
    bars = layer({"type": "bar", "color": COLOURS[0]}, {**encoding, "y": y})
    spec = {"data": {"values": list(values)}, "layer": [bars, *more]}
    return Chart(name, caption, {**spec, "width": WIDTH, "height": {"step": LINE}})
