"""Charts of the five-minute benchmark: speed over dimension and density, and of each block size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.papers.gahvari_2007.real_matrices import RealMatrices, RealRow
from sparsecast.papers.gahvari_2007.search_space import (
    NNZ_PER_ROW,
    SIZES,
    UNBLOCKED,
    Point,
    Series,
    problem_bytes,
)
from sparsecast.papers.gahvari_2007.summary import Rating
from sparsecast.reports.charts.chart import (
    COLOURS,
    GREY,
    HEIGHT,
    Chart,
    Spec,
    axis,
    beside,
    layer,
    look,
    spans,
    tooltip,
)

#: The figures of a Summary that are lines, with their words and the dashes of their lines.
_LINES = (
    ("unblocked_max_mflops", "unblocked maximum", [1, 3]),
    ("unblocked_median_mflops", "unblocked median", [6, 4]),
    ("blocked_max_mflops", "blocked maximum", [8, 3, 2, 3]),
    ("blocked_median_mflops", "blocked median", [1, 0]),
)

_SYMMETRIC_LINES = (
    ("symmetric_max_mflops", "symmetric maximum", [1, 3]),
    ("symmetric_median_mflops", "symmetric median", [6, 4]),
)

#: Pixels of a map, and of a block size.
_WIDTH, _STEP = 320, 20

Speeds = Mapping[Series, Mapping[Point, float]]
Row = dict[str, Any]

#: The lines between sizes of problems, and the names of what lies between them.
Sizes = tuple[list[Row], list[Row]]


def bench(rating: Rating) -> Chart:
    """Return maps as in Figure 7 of Gahvari et al. (2007), and next to them the speeds of the block sizes.

    Maps are of the matrices without blocks, and of the block size with the highest median.
    """
    speeds: dict[Series, dict[Point, float]] = {}
    for point, speed in rating.speeds.items():
        speeds.setdefault(point.series, {})[point] = speed
    shown = [UNBLOCKED] if UNBLOCKED in speeds else []
    blocked = [series for series in speeds if series.is_blocked]
    if blocked:
        shown.append(max(blocked, key=lambda series: float(np.median(list(speeds[series].values())))))
    all_speeds = [speed for series in shown for speed in speeds[series].values()]
    domain = [min(all_speeds), max(all_speeds)]
    lengths = np.linspace(NNZ_PER_ROW[0] - 1, NNZ_PER_ROW[-1] + 2, 30)
    maps = []
    for series in shown:
        rows = [
            {"dimension": point.dimension, "nnz_per_row": point.nnz_per_row, "mflops": speed}
            for point, speed in speeds[series].items()
        ]
        ends = _ends([row["dimension"] for row in rows])
        x = axis("dimension", "dimension", ends, is_log=True)
        x["scale"] = {"type": "log", "base": 2, "nice": False, "domain": ends}
        x["axis"] = {
            "labelExpr": "datum.value < 1024 ? datum.value : datum.value < 1048576 ? "
            "datum.value / 1024 + ' Ki' : datum.value / 1048576 + ' Mi'"
        }
        y = axis("nnz_per_row", "non-zeros per row")
        y["scale"] = {"domain": [NNZ_PER_ROW[0] - 1, NNZ_PER_ROW[-1] + 2], "nice": False}
        what = "no blocks, CSR" if series == UNBLOCKED else f"blocks of {series.name}, BCSR: the fastest size"
        maps.append(_map(what, rows, (x, y), _sizes(ends, lengths, rating), domain))
    return beside("bench", maps, [_block_sizes(speeds, rating)])


def speed_title(rating: Rating) -> str:
    """Return what was rated, and on which machine."""
    machine = rating.machine
    return f"{machine.name if machine.gpu else machine.processor}: {rating.setting}"


def _ends(values: Sequence[float]) -> list[float]:
    """Return the ends of an axis on which all values have room."""
    return [min(values) / 1.5, max(values) * 1.5]


def _map(caption: str, rows: list[Row], axes: tuple[Spec, Spec], sizes: Sizes, domain: list[float]) -> Chart:
    """Return speeds as colours over dimension and density, with the lines between the sizes."""
    (x, y), (borders, names) = axes, sizes
    texts = {"matrix": "matrix"} if rows and "matrix" in rows[0] else {}
    shown = tooltip(texts, dimension="dimension", nnz_per_row="non-zeros per row", mflops="MFLOP/s")
    colors = {"scheme": "cividis", "domain": domain}
    color = {"field": "mflops", "type": "quantitative", "title": "MFLOP/s", "scale": colors}
    points = {"type": "point", "filled": True, "size": 60, "opacity": 1}
    lines = {"type": "line", "color": "black", "clip": True}
    layers = [
        layer(points, {"x": x, "y": y, "color": color, "tooltip": shown}, rows),
        layer(lines, {"x": x, "y": y, "detail": {"field": "border"}}, borders),
        layer("text", {"x": x, "y": {"value": 6}, "text": {"field": "size"}}, names),
    ]
    return Chart("speed-map", caption, {"layer": layers, "width": _WIDTH, "height": HEIGHT})


def _sizes(ends: list[float], lengths: NDArray[np.float64], rating: Rating) -> Sizes:
    """Return the lines at which problems become medium and large, and the names of what lies between."""
    if not rating.cache_bytes:
        return [], []
    small_until = rating.cache_bytes / np.array([problem_bytes(1, k, rating.value_bytes) for k in lengths])
    medium_until = np.full(len(lengths), rating.cache_bytes / rating.value_bytes)
    borders, names = [], []
    begin, most = ends
    for size, border in (("small", small_until), ("medium", medium_until), ("large", None)):
        end = most if border is None else min(most, float(np.median(border)))
        if begin < end:
            names.append({"size": size, "dimension": float(np.sqrt(begin * end))})
        if border is not None and ends[0] < border.max() and border.min() < most:
            borders += [
                {"border": size, "dimension": float(dimension), "nnz_per_row": float(length)}
                for dimension, length in zip(border, lengths, strict=True)
            ]
        begin = max(begin, end)
    return borders, names


def _block_sizes(speeds: Speeds, rating: Rating) -> Chart:
    """Return median, quartiles and ends of each block size, and the figures of the machine as lines."""
    quantiles = {"least": 0, "lower": 25, "median": 50, "upper": 75, "most": 100}
    rows: list[Row] = [
        {"size": series.name, "kind": "blocks" if series.is_blocked else "no blocks"}
        | {name: float(np.percentile(list(of_points.values()), q)) for name, q in quantiles.items()}
        for series, of_points in speeds.items()
    ]
    rows.sort(key=lambda row: -row["median"])
    x = {"field": "size", "type": "nominal", "sort": None, "title": "block size", "axis": {"labelAngle": -90}}
    y = axis("median", "MFLOP/s")
    kinds = look("kind", ["blocks", "no blocks"])
    kinds["color"]["scale"]["range"] = [COLOURS[0], COLOURS[3]]
    shown = tooltip(
        {"size": "block size"},
        **{name: f"{name}, MFLOP/s" for name in ("median", "lower", "upper", "least", "most")},
    )
    marks = {"x": x, "y": y, "color": kinds["color"], "tooltip": shown}
    layers = [
        spans(marks, "y", "least", "most", 1, opacity=1.0),
        spans(marks, "y", "lower", "upper", 6),
        layer({"type": "point", "filled": True, "size": 50}, {**marks, "shape": kinds["shape"]}),
        _figure_lines(rating, y, _LINES),
    ]
    width = max(_WIDTH, _STEP * len(rows))
    spec = {"data": {"values": rows}, "layer": layers, "width": width, "height": HEIGHT}
    return Chart("block-sizes", "Mark: median; bar: quartiles; line: least to most.", spec)


def _figure_lines(rating: Rating, y: Spec, drawn: Sequence[tuple[str, str, list[int]]]) -> Spec:
    lines = [
        {"line": f"{words}: {value:,.0f}", "mflops": value, "dash": dash}
        for name, words, dash in drawn
        if (value := getattr(rating.figures, name)) is not None
    ]
    dashes = {
        "field": "line",
        "title": None,
        "scale": {"domain": [line["line"] for line in lines], "range": [line["dash"] for line in lines]},
        "legend": {"columns": 1},
    }
    encoding = {"y": {**y, "field": "mflops"}, "strokeDash": dashes}
    return layer({"type": "rule", "color": "black"}, encoding, lines)


#: What is shown of a real matrix, by the attribute of its row.
_TUNED = {"untuned_mflops": "CSR", "tuned_mflops": "tuned"}
_SYMMETRIC = {"tuned_mflops": "tuned", "symmetric_mflops": "one triangle"}
_TWIN = {"again_mflops": "real, CSR", "banded_mflops": "synthetic, CSR"}
_SQUARE_TWIN = {"square_mflops": "real, blocks", "banded_square_mflops": "synthetic, blocks"}


def real(measured: RealMatrices) -> dict[str, Chart]:
    """Return the charts of real matrices in Gahvari et al. (2007), by the number of the figure."""
    top = max(row["tuned_mflops"] for row in measured.rows)
    charts: dict[str, list[Chart]] = {"figures-3-to-5": []}
    for kind, what in _TUNED.items():
        rows = _points_of(measured.rows, {kind: what})
        ends, heights = (_ends([row[key] for row in rows]) for key in ("dimension", "nnz_per_row"))
        x = axis("dimension", "rows", ends, is_log=True)
        y = axis("nnz_per_row", "non-zeros per row", heights, is_log=True)
        x["scale"]["domain"], y["scale"]["domain"] = ends, heights
        sizes = _sizes(ends, np.geomspace(heights[0], heights[1], 30), measured.rating)
        charts["figures-3-to-5"].append(_map(f"matrices, {what}", rows, (x, y), sizes, [0, top]))
    charts["figures-8-to-10"] = [
        _real_speeds(caption, points)
        for caption, kinds in (("untuned", _TWIN), ("tuned: square blocks", _SQUARE_TWIN))
        if (points := _points_of(measured.rows, kinds))
    ]
    charts["figures-11-to-13"] = [
        _real_speeds(f"{size or 'unknown'} size", points, measured.rating, _LINES)
        for size in (*SIZES, None)
        if (points := _points_of([row for row in measured.rows if row["size"] == size], _TUNED))
    ]
    if points := _points_of(measured.rows, _SYMMETRIC):
        lines = (*_LINES[2:], *_SYMMETRIC_LINES)
        charts["figures-13-to-15"] = [_real_speeds("symmetric matrices", points, measured.rating, lines)]
    return {name: beside(name, *([chart] for chart in row)) for name, row in charts.items() if row}


def _points_of(rows: Sequence[RealRow], kinds: Mapping[str, str]) -> list[Row]:
    """Return a point for each kind of each matrix that has the last of them."""
    *_, last = kinds
    facts = {"matrix": "matrix", "rows": "dimension", "nnz": "nnz", "nnz_per_row": "nnz_per_row"}
    return [
        {name: row[key] for key, name in facts.items()} | {"kind": kind, "mflops": row[speed]}
        for row in rows
        if row[last] is not None
        for speed, kind in kinds.items()
    ]


def _real_speeds(
    caption: str,
    rows: list[Row],
    rating: Rating | None = None,
    drawn: Sequence[tuple[str, str, list[int]]] = (),
) -> Chart:
    """Return speeds over non-zeros, those of a matrix joined by a line, and some figures as lines."""
    ends = _ends([row["nnz"] for row in rows])
    x, y = axis("nnz", "non-zeros", ends, is_log=True), axis("mflops", "MFLOP/s")
    joined = {"x": x, "y": y, "detail": {"field": "matrix"}}
    points = {
        "x": x,
        "y": y,
        **look("kind", [row["kind"] for row in rows]),
        "tooltip": tooltip({"matrix": "matrix", "kind": "format"}, nnz="non-zeros", mflops="MFLOP/s"),
    }
    layers = [
        layer({"type": "line", "color": GREY, "strokeWidth": 1}, joined),
        layer({"type": "point", "filled": True, "opacity": 1}, points),
    ]
    if rating is not None:
        layers.append(_figure_lines(rating, y, drawn))
    spec = {"data": {"values": rows}, "layer": layers, "width": _WIDTH, "height": HEIGHT}
    return Chart("real", caption, spec)
