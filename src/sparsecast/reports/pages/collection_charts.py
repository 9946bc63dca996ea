"""The charts of the page of a collection: forecasts against measurements, and what the models are worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sparsecast.models.intervals import INTERVAL_SHARE
from sparsecast.reports.evaluation_figures import noise_band
from sparsecast.reports.figures import COLOURS
from sparsecast.reports.pages.charts import Chart, Spec, axis, format_colours, framed, tooltip, zoom
from sparsecast.results.evaluation import ErrorScore, EvaluationRow, ModelScore

#: Height of the square chart and of a row of the others, in pixels.
_SQUARE, _ROW = 460, 26

#: More points than these make a page slow: then every second, third... is drawn, in the order of their times.
_MOST_POINTS = 2000

#: Percent below which an error is drawn as this much, on a logarithmic axis.
_LEAST_ERROR = 0.01


def agreement(rows: Sequence[EvaluationRow], score: ModelScore) -> Chart:
    """Return forecast against measurement of at least one product, with the band of the noise."""
    step = -(-len(rows) // _MOST_POINTS)
    shown = sorted(rows, key=lambda row: row.measured)[::step]
    points = [_point(row) for row in shown]
    times = [point[key] for point in points for key in ("measured_ms", "forecast_ms")]
    ends = [min(times) / 1.5, max(times) * 1.5]
    noise, noise_name = noise_band(score)
    band = [{"at": x, "low": x / (1 + (noise or 0)), "high": x * (1 + (noise or 0))} for x in ends]
    scale = {"type": "log", "nice": False, "domain": ends}
    x = {**axis("measured_ms", "measured, milliseconds"), "scale": scale}
    y = {**axis("forecast_ms", "forecast, milliseconds"), "scale": scale}
    at = {**x, "field": "at"}
    layers: list[Spec] = [
        {
            "data": {"values": band},
            "mark": {"type": "area", "color": "#888888", "opacity": 0.35},
            "encoding": {"x": at, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
        },
        {
            "data": {"values": band},
            "mark": {"type": "line", "color": "#888888", "strokeWidth": 1},
            "encoding": {"x": at, "y": {**y, "field": "at"}},
        },
        {
            "data": {"values": points},
            "mark": {"type": "point", "filled": True, "size": 45, "opacity": 0.8},
            "encoding": {
                "x": x,
                "y": y,
                "color": format_colours([point["format"] for point in points]),
                "tooltip": tooltip(
                    matrix="matrix",
                    format="format",
                    forecast_ms="forecast, ms",
                    measured_ms="measured, ms",
                    error="error",
                ),
            },
            "params": zoom(),
        },
    ]
    said = "Each point is a format of a matrix that the model had not seen; on the line it is right."
    if noise is not None:
        said += f" Grey band, {100 * noise:.1f} %: what measurements of the same differ by ({noise_name})."
    if step > 1:
        said += f" {len(shown):,} of {len(rows):,} points are drawn."
    return framed("agreement", said, _SQUARE, layer=layers, width=_SQUARE)


def _point(row: EvaluationRow) -> dict[str, Any]:
    return {
        "matrix": row.matrix,
        "format": row.estimate.candidate.format.upper(),
        "forecast_ms": 1e3 * row.estimate.value,
        "measured_ms": 1e3 * row.measured,
        "error": f"{100 * row.error:+.1f} %",
    }


def errors(name: str, caption: str, scores: Mapping[str, ErrorScore]) -> Chart:
    """Return the median and the ninetieth percentile of the errors of models or formats, by name."""
    values = [
        {
            "name": each,
            "median": max(100 * score.median_error, _LEAST_ERROR),
            "p90": max(100 * score.p90_error, _LEAST_ERROR),
            "noise": None if score.median_noise is None else 100 * score.median_noise,
            "forecasts": score.forecasts,
        }
        for each, score in scores.items()
    ]
    y = {"field": "name", "type": "nominal", "sort": list(scores), "title": None}
    shown = tooltip(
        name="of", median="median, %", p90="90 % below, %", noise="noise, %", forecasts="forecasts"
    )
    title = "error of the forecasts, %"
    layers: list[Spec] = [
        {
            "mark": {"type": "rule", "strokeWidth": 5, "opacity": 0.5, "color": COLOURS[0]},
            "encoding": {"x": axis("median", title, is_log=True), "x2": {"field": "p90"}},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 90, "color": COLOURS[0], "opacity": 1},
            "encoding": {"x": axis("median", title, is_log=True)},
        },
    ]
    for layer in layers:
        layer["encoding"] |= {"y": y, "tooltip": shown}
    return framed(name, caption, _height(values), data={"values": values}, layer=layers)


def regret(scores: Mapping[str, ModelScore]) -> Chart:
    """Return what the choices of the models lose against the fastest measured format."""
    values = [{"name": name, "regret": 100 * score.regret} for name, score in scores.items()]
    said = "Regret: how much longer the format takes that a model chooses than the fastest one, in the mean."
    encoding = {"x": axis("regret", "regret, %"), "tooltip": tooltip(name="model", regret="regret, %")}
    return _bars("regret", said, values, [], encoding)


def coverage(scores: Mapping[str, ModelScore]) -> Chart:
    """Return the shares of the measurements that the intervals of the models hold."""
    values = [
        {"name": name, "held": 100 * score.coverage, "width": 100 * (score.mean_width or 0.0)}
        for name, score in scores.items()
        if score.coverage is not None
    ]
    said = f"Measurements within the interval, which is meant to hold {100 * INTERVAL_SHARE:.0f} % (line)."
    meant = {
        "mark": {"type": "rule", "color": "#888888", "strokeDash": [5, 3], "strokeWidth": 2},
        "encoding": {"x": {"datum": 100 * INTERVAL_SHARE}},
    }
    encoding = {
        "x": {**axis("held", "measurements within the interval, %"), "scale": {"domain": [0, 100]}},
        "tooltip": tooltip(name="model", held="held, %", width="mean width, %"),
    }
    return _bars("coverage", said, values, [meant], encoding)


def _bars(
    name: str, caption: str, values: Sequence[dict[str, Any]], more: Sequence[Spec], encoding: Spec
) -> Chart:
    order = [value["name"] for value in values]
    y = {"field": "name", "type": "nominal", "sort": order, "title": None}
    bars = {"mark": {"type": "bar", "color": COLOURS[0]}, "encoding": {**encoding, "y": y}}
    return framed(name, caption, _height(values), data={"values": list(values)}, layer=[bars, *more])


def _height(values: Sequence[object]) -> int:
    return max(60, _ROW * len(values))
