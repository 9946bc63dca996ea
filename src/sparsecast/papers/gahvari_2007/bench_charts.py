"""Charts of the five-minute benchmark: speed over dimension and density, and of each block size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sparsecast.machines.machine import Machine
from sparsecast.papers.gahvari_2007.real_matrices import RealMatrices
from sparsecast.papers.gahvari_2007.search_space import (
    NNZ_PER_ROW,
    SIZES,
    UNBLOCKED,
    Point,
    Series,
    problem_bytes,
)
from sparsecast.papers.gahvari_2007.summary import Rating, speeds_of
from sparsecast.records import VALUE_BYTES
from sparsecast.reports.charts.chart import COLOURS, HEIGHT, Chart, Spec, axis, beside, look, tooltip

#: The figures of a Summary that are lines, with their words and the dashes of their lines.
_LINES = (
    ("unblocked_max_mflops", "unblocked maximum", [1, 3]),
    ("unblocked_median_mflops", "unblocked median", [6, 4]),
    ("blocked_max_mflops", "blocked maximum", [8, 3, 2, 3]),
    ("blocked_median_mflops", "blocked median", [1, 0]),
)

#: Pixels of a map, and of a block size.
_WIDTH, _STEP = 320, 20

Speeds = Mapping[Series, Mapping[Point, float]]


def bench(rating: Rating) -> Chart:
    """Return maps as in Figure 7 of Gahvari et al. (2007), and beside them the speeds of the block sizes.

    Maps are of the matrices without blocks, and of the block size with the highest median.
    """
    speeds: dict[Series, dict[Point, float]] = {}
    for point, speed in speeds_of(rating.records).items():
        speeds.setdefault(point.series, {})[point] = speed
    shown = [UNBLOCKED] if UNBLOCKED in speeds else []
    blocked = [series for series in speeds if _is_blocked(series)]
    if blocked:
        shown.append(max(blocked, key=lambda series: float(np.median(list(speeds[series].values())))))
    all_speeds = [speed for series in shown for speed in speeds[series].values()]
    domain = [min(all_speeds), max(all_speeds)]
    maps = [_speed_map(series, speeds[series], rating, domain) for series in shown]
    return beside("bench", maps, [_block_sizes(speeds, rating)])


def speed_title(rating: Rating, machine: Machine) -> str:
    """Return what was rated, and on which machine."""
    return f"{machine.name if machine.gpu else machine.processor}: {rating.setting}"


def _is_blocked(series: Series) -> bool:
    return series != UNBLOCKED and not series.is_symmetric


def _speed_map(series: Series, speeds: Mapping[Point, float], rating: Rating, domain: list[float]) -> Chart:
    rows = [
        {"dimension": point.dimension, "nnz_per_row": point.nnz_per_row, "mflops": speed}
        for point, speed in speeds.items()
    ]
    dimensions = [row["dimension"] for row in rows]
    ends = [min(dimensions) / 1.5, max(dimensions) * 1.5]
    x = axis("dimension", "dimension", ends, is_log=True)
    x["scale"] = {"type": "log", "base": 2, "nice": False, "domain": ends}
    x["axis"] = {
        "labelExpr": "datum.value < 1024 ? datum.value : datum.value < 1048576 ? "
        "datum.value / 1024 + ' Ki' : datum.value / 1048576 + ' Mi'"
    }
    y = axis("nnz_per_row", "non-zeros per row")
    y["scale"] = {"domain": [NNZ_PER_ROW[0] - 1, NNZ_PER_ROW[-1] + 2], "nice": False}
    borders, names = _sizes(ends, rating)
    layers: list[Spec] = [
        {
            "data": {"values": rows},
            "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
            "encoding": {
                "x": x,
                "y": y,
                "color": {
                    "field": "mflops",
                    "type": "quantitative",
                    "title": "MFLOP/s",
                    "scale": {"scheme": "cividis", "domain": domain},
                },
                "tooltip": tooltip(
                    {"dimension": "dimension", "nnz_per_row": "non-zeros per row"}, mflops="MFLOP/s"
                ),
            },
        },
        {
            "data": {"values": borders},
            "mark": {"type": "line", "color": "black", "clip": True},
            "encoding": {"x": x, "y": y, "detail": {"field": "border"}},
        },
        {
            "data": {"values": names},
            "mark": {"type": "text"},
            "encoding": {"x": x, "y": {"value": 6}, "text": {"field": "size"}},
        },
    ]
    what = "no blocks, CSR" if series == UNBLOCKED else f"blocks of {series.name}, BCSR: the fastest size"
    return Chart("speed-map", what, {"layer": layers, "width": _WIDTH, "height": HEIGHT})


def _sizes(ends: list[float], rating: Rating) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the lines at which problems become medium and large, and the names of what lies between them."""
    if not rating.cache_bytes:
        return [], []
    lengths = np.linspace(NNZ_PER_ROW[0] - 1, NNZ_PER_ROW[-1] + 2, 30)
    value_bytes = VALUE_BYTES[rating.dtype]
    small_until = rating.cache_bytes / np.array([problem_bytes(1, k, value_bytes) for k in lengths])
    medium_until = np.full(len(lengths), rating.cache_bytes / value_bytes)
    borders, names = [], []
    begin, most = ends
    for size, border in (("small", small_until), ("medium", medium_until), ("large", None)):
        end = most if border is None else min(most, float(border[-1]))
        if begin < end:
            names.append({"size": size, "dimension": float(np.sqrt(begin * end))})
        if border is not None and ends[0] < border[-1] < most:
            borders += [
                {"border": size, "dimension": float(dimension), "nnz_per_row": float(length)}
                for dimension, length in zip(border, lengths, strict=True)
            ]
        begin = max(begin, end)
    return borders, names


def _block_sizes(speeds: Speeds, rating: Rating) -> Chart:
    """Return median, quartiles and ends of each block size, and the figures of the machine as lines."""
    rows = []
    for series, of_points in speeds.items():
        values = np.percentile(list(of_points.values()), (0, 25, 50, 75, 100)).tolist()
        kind = "blocks" if _is_blocked(series) else "no blocks"
        names = ("least", "lower", "median", "upper", "most")
        rows.append({"size": series.name, "kind": kind, **dict(zip(names, values, strict=True))})
    rows.sort(key=lambda row: -float(row["median"]))
    x: Spec = {
        "field": "size",
        "type": "nominal",
        "sort": None,
        "title": "block size",
        "axis": {"labelAngle": -90},
    }
    y = axis("median", "MFLOP/s")
    kinds = look("kind", ["blocks", "no blocks"])
    kinds["color"]["scale"]["range"] = [COLOURS[0], COLOURS[3]]
    shown = tooltip(
        {"size": "block size"},
        **{name: f"{name}, MFLOP/s" for name in ("median", "lower", "upper", "least", "most")},
    )
    color = {"x": x, "color": kinds["color"], "tooltip": shown}
    layers: list[Spec] = [
        {
            "mark": {"type": "rule", "strokeWidth": width, "opacity": opacity},
            "encoding": {**color, "y": {**y, "field": low}, "y2": {"field": high}},
        }
        for low, high, width, opacity in (("least", "most", 1, 1.0), ("lower", "upper", 6, 0.4))
    ]
    mark = {"type": "point", "filled": True, "size": 50}
    layers.append({"mark": mark, "encoding": {**color, "y": y, "shape": kinds["shape"]}})
    layers.append(_figure_lines(rating, y))
    caption = "Mark: median; bar: quartiles; line: least to most."
    width = max(_WIDTH, _STEP * len(rows))
    spec = {"data": {"values": rows}, "layer": layers, "width": width, "height": HEIGHT}
    return Chart("block-sizes", caption, spec)


def _figure_lines(rating: Rating, y: Spec) -> Spec:
    """Return the layer with the figures of the machine as lines."""
    lines = [
        {"line": f"{words}: {value:,.0f}", "mflops": value, "dash": dash}
        for name, words, dash in _LINES
        if (value := getattr(rating.figures, name)) is not None
    ]
    dashes = {
        "field": "line",
        "title": None,
        "scale": {"domain": [line["line"] for line in lines], "range": [line["dash"] for line in lines]},
        "legend": {"columns": 1},
    }
    return {
        "data": {"values": lines},
        "mark": {"type": "rule", "color": "black"},
        "encoding": {"y": {**y, "field": "mflops"}, "strokeDash": dashes},
    }


def real(measured: RealMatrices) -> Chart:
    """Return Figures 11 to 13 of Gahvari et al. (2007), a chart for each size, and beside them 3 to 5."""
    rows = [
        {
            "matrix": row.matrix,
            "size": row.size or "unknown size",
            "rows": row.rows,
            "nnz": row.nnz,
            "nnz_per_row": row.nnz_per_row,
            "kind": kind,
            "mflops": speed,
        }
        for row in measured.rows
        for kind, speed in zip(
            _KINDS,
            (row.untuned_mflops, row.tuned_mflops, row.synthetic_mflops, row.symmetric_mflops),
            strict=True,
        )
        if speed is not None
    ]
    sizes = [size for size in (*SIZES, "unknown size") if size in {row["size"] for row in rows}]
    speeds = [_real_speeds(size, [row for row in rows if row["size"] == size], measured) for size in sizes]
    top = max(row.tuned_mflops for row in measured.rows)
    maps = [_real_map(kind, [row for row in rows if row["kind"] == kind], top) for kind in _KINDS[:2]]
    return beside("real", speeds, maps)


#: Speeds of a real matrix, of the synthetic one of its dimension and density, and of one triangle.
_KINDS = ("CSR", "tuned", "synthetic", "one triangle")

_REAL_TEXTS = {"matrix": "matrix", "kind": "format"}


def _real_speeds(size: str, rows: list[dict[str, Any]], measured: RealMatrices) -> Chart:
    ends = [min(row["nnz"] for row in rows) / 1.5, max(row["nnz"] for row in rows) * 1.5]
    y = axis("mflops", "MFLOP/s")
    points = {
        "data": {"values": rows},
        "mark": {"type": "point", "filled": True, "size": 50, "opacity": 1},
        "encoding": {
            "x": axis("nnz", "non-zeros", ends, is_log=True),
            "y": y,
            **look("kind", list(_KINDS)),
            "tooltip": tooltip(_REAL_TEXTS, nnz="non-zeros", mflops="MFLOP/s"),
        },
    }
    layers = [points, _figure_lines(measured.rating, y)]
    return Chart(f"real-{size}", f"{size} matrices", {"layer": layers, "width": _WIDTH, "height": HEIGHT})


def _real_map(kind: str, rows: list[dict[str, Any]], top: float) -> Chart:
    dimensions, lengths = ([row[key] for row in rows] for key in ("rows", "nnz_per_row"))
    spec = {
        "data": {"values": rows},
        "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
        "encoding": {
            "x": axis("rows", "rows", [min(dimensions) / 1.5, max(dimensions) * 1.5], is_log=True),
            "y": axis(
                "nnz_per_row", "non-zeros per row", [min(lengths) / 1.5, max(lengths) * 1.5], is_log=True
            ),
            "color": {
                "field": "mflops",
                "type": "quantitative",
                "title": "MFLOP/s",
                "scale": {"scheme": "cividis", "domain": [0, top]},
            },
            "tooltip": tooltip(_REAL_TEXTS, rows="rows", nnz_per_row="non-zeros per row", mflops="MFLOP/s"),
        },
        "width": _WIDTH,
        "height": HEIGHT,
    }
    return Chart(f"real-{kind}", f"real matrices, {kind}", spec)
