"""Charts of values with their intervals, one per line: times of formats, of machines, of ranks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sparsecast.errors import InputError
from sparsecast.formats import FORMATS
from sparsecast.formats.libraries import LIBRARIES
from sparsecast.models.clusters.cluster_model import ClusterForecast
from sparsecast.records import Candidate, DistributedRecord, Forecast, Record
from sparsecast.reports.charts.chart import (
    LINE,
    WIDTH,
    Chart,
    Spec,
    axis,
    dot,
    format_look,
    layer,
    look,
    panels,
    spans,
    tooltip,
)
from sparsecast.results.cluster import MeasuredProduct, formats_of
from sparsecast.results.columns import stored_as, thread_numbers
from sparsecast.results.placement import Placement
from sparsecast.system.texts import counted

#: Greatest number of readable lines on a page.
_MOST_LINES = 400

#: Limits of titles and axes of panels.
_LEAST_HEIGHT = 60

#: Shapes of forecast, measured and other values.
_SHAPES = ("circle", "diamond", "square")

Row = dict[str, Any]


def row(label: str, group: str, what: str, value: float | None, low: float | None, high: float | None) -> Row:
    """Return a mark: `what` gives its shape, `group` its colour."""
    return {"label": label, "format": group, "what": what, "value": value, "low": low, "high": high}


def forecast_rows(items: Iterable[Forecast], measured: Mapping[str, Record] | None = None) -> list[Row]:
    """Return the rows of Forecasts, the fastest first, and of what was `measured` of each format.

    The value of a probe counts as measured, with the noise as its interval.
    """
    ordered = sorted(items, key=lambda item: item.time_s)
    labels = _labels([item.candidate for item in ordered])
    rows = []
    for label, forecast in zip(labels, ordered, strict=True):
        name = forecast.candidate.format
        if forecast.basis == "measured":
            ends = forecast.low_s, forecast.high_s
            rows.append(row(label, name.upper(), "measured", forecast.time_s, *ends))
            continue
        shown = label if forecast.basis == "model" else f"{label} ({forecast.basis})"
        rows += _pair(shown, name.upper(), forecast, (measured or {}).get(name))
    return rows


def measured_rows(records: Iterable[Record], expected: Mapping[Candidate, Forecast]) -> list[Row]:
    """Return the rows of measurements, the fastest first, with their Forecasts."""
    ordered = sorted(records, key=lambda record: record.time_s)
    labels = _labels([record.candidate for record in ordered])
    rows = []
    for label, record in zip(labels, ordered, strict=True):
        hz = record.conditions.frequency_hz if record.conditions else None
        repeated = labels.count(label) > 1 and hz is not None
        shown = f"{label}, {(hz or 0) / 1e9:.2f} GHz" if repeated else label
        rows += _pair(shown, record.candidate.format.upper(), expected.get(record.candidate), record)
    return rows


def rank_rows(measured: Iterable[MeasuredProduct]) -> list[Row]:
    """Return the rows of products on many ranks, the fastest first."""
    rows = []
    for product in sorted(measured, key=lambda product: product.record.time_s):
        way = product.record.configuration
        label = f"{way.algorithm}, {formats_of(way)}, {way.partition}"
        rows += _pair(label, way.algorithm, product.forecast, product.record)
    return rows


def machine_rows(placements: Sequence[Placement], quantity: str = "total") -> list[Row]:
    """Return the rows of a matrix on several machines, in order, by a `quantity` of a Placement."""
    rows = []
    for placement in placements:
        place = "tie, by time" if placement.is_tie else "best" if placement is placements[0] else "slower"
        label = f"{placement.machine}, {placement.formats}"
        rows.append(row(label, placement.machine, place, *getattr(placement, quantity)))
    return rows


def _pair(
    label: str,
    group: str,
    forecast: Forecast | ClusterForecast | None,
    record: Record | DistributedRecord | None,
) -> list[Row]:
    """Return the rows of a forecast and of a measurement, if there are any."""
    rows = []
    if forecast is not None:
        rows.append(row(label, group, "forecast", forecast.time_s, forecast.low_s, forecast.high_s))
    if record is not None:
        noise = record.noise
        ends = (None, None) if noise is None else (record.time_s / (1 + noise), record.time_s * (1 + noise))
        rows.append(row(label, group, "measured", record.time_s, *ends))
    return rows


def _labels(candidates: Sequence[Candidate]) -> list[str]:
    """Return format and kernel of each, with parameters if only these distinguish it from another."""
    counts = Counter((stored_as(candidate), candidate.kernel) for candidate in candidates)
    differ = len(thread_numbers(candidates)) > 1
    labels = []
    for candidate in candidates:
        words = [stored_as(candidate), candidate.kernel]
        words += [counted(candidate.threads, "thread")] if differ else []
        narrow = FORMATS.get(candidate.format).narrow_parameters
        for name, value in candidate.parameters.items():
            if counts[stored_as(candidate), candidate.kernel] > 1 and name not in narrow:
                words.append(f"{name} {'x'.join(map(str, value)) if isinstance(value, tuple) else value}")
        labels.append(", ".join(words))
    return labels


def refuse_many(lines: int) -> None:
    """Refuse a chart with more lines than can be read."""
    if lines > _MOST_LINES:
        raise InputError(
            f"a figure would show {lines:,} lines: expected at most {_MOST_LINES}; ask for fewer matrices"
        )


def times(rows_of: Mapping[str, Sequence[Row]], title: str) -> Chart:
    """Return the chart of a figure: a panel for each matrix, with the seconds of its rows."""
    shown = {name: rows for name, rows in rows_of.items() if rows}
    if not shown:
        raise InputError("a figure would show nothing: expected a time; ask for other formats")
    refuse_many(sum(len({row["label"] for row in rows}) for rows in shown.values()))
    charts = [intervals(name, name, rows, title, "s") for name, rows in shown.items()]
    return charts[0] if len(charts) == 1 else panels("times", title, charts, columns=1)


def intervals(
    name: str,
    caption: str,
    rows: Sequence[Row],
    title: str,
    unit: str,
    texts: Mapping[str, str] | None = None,
    **numbers: str,
) -> Chart:
    """Return values along an axis, each with a bar for its interval.

    `rows` are those of `row`; those of one label share a line. `title` and `unit` are those of the axis, and
    `texts` and `numbers` further fields of the rows in a tooltip, with their names.
    """
    kinds = sorted({row["what"] for row in rows})
    labels = dict.fromkeys(row["label"] for row in rows)
    values = [number for row in rows for number in (row["value"], row["low"], row["high"])]
    groups = [row["format"] for row in rows]
    are_formats = {group.lower() for group in groups} <= {*FORMATS.names(), *LIBRARIES.names()}
    looks = format_look(groups) if are_formats else look("format", groups)
    encoding: Spec = {
        "y": {"field": "label", "type": "nominal", "sort": None, "title": None},
        "color": {**looks["color"], "legend": None},
        "tooltip": tooltip(
            {"label": "name", "what": "kind", **(texts or {})},
            value=f"{title}, {unit}" if unit else title,
            low="from",
            high="to",
            **numbers,
        ),
    }
    is_paired = len(rows) > len(labels)
    if is_paired:
        encoding["yOffset"] = {"field": "what", "sort": kinds}
    scale = {"domain": kinds, "range": _SHAPES[: len(kinds)]}
    shape: Spec = {"field": "what", "title": None, "scale": scale}
    if len(kinds) < 2:
        shape["legend"] = None
    encoding["x"] = axis("value", title, values, unit)
    layers = [
        spans(encoding, "x", "low", "high", 5),
        {"transform": [{"filter": "isValid(datum.value)"}], **layer(dot(), {**encoding, "shape": shape})},
    ]
    height = max(_LEAST_HEIGHT, LINE * len(labels) * (1.3 if is_paired else 1))
    spec = {"data": {"values": list(rows)}, "width": WIDTH, "height": height, "layer": layers}
    return Chart(name, caption, spec)
