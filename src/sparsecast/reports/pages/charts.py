"""The charts of a page, as Vega-Lite: drawn as SVG beforehand, and again by JavaScript where there is some.

Satyanarayan, Moritz, Wongsuphasawat and Heer (2017) describe the language.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sparsecast.records import Bandwidth, Forecast, Record, product_flops
from sparsecast.reports.charts.chart import COLOURS, Chart
from sparsecast.reports.tables import size
from sparsecast.results.prediction import Prediction

Spec = dict[str, Any]

#: Sizes of a chart without its axes, in pixels.
_WIDTH, _HEIGHT, _LOW, _ROW = 560, 300, 180, 26

#: Width of a chart that stands beside another one.
_HALF = 420

#: In a tooltip: three digits of a number; and fields without a unit that are no counts.
_MEASURE = {"type": "quantitative", "format": ".3~g"}
_RATIOS = ("ratio", "intensity", "gflops", "share")

#: Pixels that a logarithmic axis goes on beyond the first and last mark, which would be cut otherwise.
_PADDING = 8

#: Numbers of products that the chart of break-even shows, and points of a line.
_PRODUCTS, _POINTS = (1, 1_000_000), 49

#: Roofs are named whose speeds differ by so much.
_APART = 1.4

#: Bars of the row lengths.
_BARS = 40


def framed(name: str, caption: str, height: int, **spec: Any) -> Chart:
    """Return a chart of the usual width, or of that in `spec`, and so many pixels high."""
    whole = {
        "width": _WIDTH,
        "height": height,
        **spec,
    }
    return Chart(name, caption, whole)


def axis(field: str, title: str, *, is_log: bool = False, **more: Any) -> Spec:
    """Return the encoding of numbers along an axis, from 0 or logarithmic."""
    scale = {"type": "log", "nice": False, "padding": _PADDING} if is_log else {"zero": True}
    return {"field": field, "type": "quantitative", "title": title, "scale": scale, **more}


def format_colours(names: Sequence[str]) -> Spec:
    """Return the encoding of formats as colours: those of `names`, which may repeat."""
    ordered = sorted(set(names))
    colours = [COLOURS[k % len(COLOURS)] for k in range(len(ordered))]
    return {
        "field": "format",
        "type": "nominal",
        "scale": {"domain": ordered, "range": colours},
        "title": "format",
    }


def tooltip(**fields: str) -> list[Spec]:
    """Return the encoding of a tooltip: what each field is called. Measures have as many digits as in tables.

    A field whose title has a unit, or that is a ratio, is such a measure.
    """
    return [
        {"field": field, "title": title, **(_MEASURE if "," in title or field in _RATIOS else {})}
        for field, title in fields.items()
    ]


def forecasts(found: Prediction, measured: Mapping[str, Record]) -> Chart:
    """Return the forecast times with their intervals, and what was measured beside them."""
    rows = [_times(each, measured.get(each.candidate.format)) for each in found]
    order = [row["format"] for row in rows]
    y = {"field": "format", "type": "nominal", "sort": order, "title": None}
    shown = tooltip(
        format="format",
        kernel="kernel",
        time_ms="forecast, ms",
        low_ms="from, ms",
        high_ms="to, ms",
        measured_ms="measured, ms",
    )
    x_title = "milliseconds a product"
    layers: list[Spec] = [
        {
            "mark": {"type": "rule", "strokeWidth": 5, "opacity": 0.5, "color": COLOURS[0]},
            "encoding": {"x": axis("low_ms", x_title, is_log=True), "x2": {"field": "high_ms"}},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 90, "color": COLOURS[0], "opacity": 1},
            "encoding": {"x": axis("time_ms", x_title, is_log=True)},
        },
    ]
    said = "Forecast time of one product in each format, fastest first; the bar holds 90 of 100."
    if measured:
        layers.append(
            {
                "transform": [{"filter": "isValid(datum.measured_ms)"}],
                "mark": {"type": "tick", "thickness": 3, "size": 20},
                "encoding": {
                    "x": axis("measured_ms", x_title, is_log=True),
                    "color": {"value": COLOURS[3]},
                },
            }
        )
        said += " Upright strokes: measured."
    for layer in layers:
        layer["encoding"] |= {"y": y, "tooltip": shown}
    return framed("forecasts", said, max(60, _ROW * len(rows)), data={"values": rows}, layer=layers)


def _times(each: Forecast, own: Record | None) -> dict[str, Any]:
    return {
        "format": each.candidate.format.upper(),
        "kernel": each.candidate.kernel,
        "time_ms": 1e3 * each.time_s,
        "low_ms": milliseconds(each.low_s),
        "high_ms": milliseconds(each.high_s),
        "measured_ms": milliseconds(own.time_s if own else None),
    }


def break_even(found: Prediction) -> Chart:
    """Return the time of a number of products, conversion included, relative to that of CSR."""
    csr = next((each for each in found if each.candidate.format == "csr"), None)
    products = np.geomspace(*_PRODUCTS, _POINTS).round().astype(int)
    values = [
        {
            "format": each.candidate.format.upper(),
            "products": int(n),
            "ratio": _total_s(each, int(n)) / _total_s(csr, int(n)),
        }
        for each in found
        if csr is not None and each.convert_s is not None
        for n in products
    ]
    x = axis("products", "products", is_log=True)
    y = axis("ratio", "time over CSR's", is_log=True)
    encoding = {
        "x": x,
        "y": y,
        "color": format_colours([each.candidate.format.upper() for each in found]),
        "tooltip": tooltip(format="format", products="products", ratio="time over CSR's"),
    }
    return framed(
        "break-even",
        "Conversion and products together, over CSR alone: below 1 the conversion has paid.",
        _HEIGHT,
        data={"values": values},
        mark={"type": "line", "strokeWidth": 2},
        encoding=encoding,
        params=zoom(),
    )


def _total_s(each: Forecast, products: int) -> float:
    return (each.convert_s or 0.0) + products * each.time_s


def roofline(
    found: Prediction, measured: Mapping[str, Record], roofs: Sequence[Bandwidth], nnz: int
) -> Chart:
    """Return the speed of each format over its flops a byte, under the bandwidths of the machine.

    Williams, Waterman and Patterson (2009). There is no roof of operations, because none was measured.
    """
    points = []
    for each in found:
        flops = product_flops(nnz, each.candidate.dtype)
        intensity = flops / max(each.bytes, 1)
        name = each.candidate.format.upper()
        points.append(_point(name, intensity, flops / each.time_s, "forecast"))
        if own := measured.get(each.candidate.format):
            points.append(_point(name, intensity, flops / own.time_s, "measured"))
    intensities = [point["intensity"] for point in points]
    ends = [min(intensities) / 1.3, max(intensities) * 1.3]
    lines = [
        {
            "array": size(roof.bytes),
            "intensity": x,
            "gflops": x * roof.bandwidth_bytes_per_s / 1e9,
        }
        for roof in roofs
        for x in ends
    ]
    x, y = axis("intensity", "flops a byte", is_log=True), axis("gflops", "GFLOP/s", is_log=True)
    roof_layer = {
        "data": {"values": lines},
        "mark": {"type": "line", "color": "#888888", "strokeDash": [5, 3]},
        "encoding": {
            "x": x,
            "y": y,
            "detail": {"field": "array", "type": "nominal"},
            "tooltip": tooltip(array="reads of an array of"),
        },
    }
    name_layer = {
        "data": {"values": _named(lines)},
        "mark": {"type": "text", "align": "right", "dy": -7, "color": "#888888"},
        "encoding": {"x": x, "y": y, "text": {"field": "array"}},
    }
    point_layer = {
        "data": {"values": points},
        "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
        "encoding": {
            "x": x,
            "y": y,
            "color": format_colours([point["format"] for point in points]),
            "shape": {"field": "what", "type": "nominal", "title": None},
            "tooltip": tooltip(format="format", what="", intensity="flops a byte", gflops="GFLOP/s"),
        },
        "params": zoom(),
    }
    said = "Speed over flops a byte."
    if lines:
        said += " Dashed lines: reads in order, from arrays of several sizes."
    return framed(
        "roofline", said, _HEIGHT, layer=[roof_layer, name_layer, point_layer] if lines else [point_layer]
    )


def _named(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the right ends of those lines whose names do not lie upon each other, slow ones first."""
    found: list[dict[str, Any]] = []
    for end in sorted(lines[1::2], key=lambda line: float(line["gflops"])):
        if not found or end["gflops"] > _APART * found[-1]["gflops"]:
            found.append(end)
    return found


def _point(name: str, intensity: float, flops_per_s: float, what: str) -> dict[str, Any]:
    return {"format": name, "intensity": intensity, "gflops": flops_per_s / 1e9, "what": what}


def row_lengths(lengths: np.ndarray[Any, Any]) -> Chart:
    """Return how many rows have which length, as bars."""
    most = int(lengths.max(initial=0))
    edges = np.unique(np.linspace(0, most + 1, min(_BARS, most + 1) + 1).astype(int))
    counts, _ = np.histogram(lengths, edges)
    values = [
        {"from": int(a), "to": int(b), "last": int(b) - 1, "rows": int(n)}
        for a, b, n in zip(edges, edges[1:], counts, strict=False)
        if n
    ]
    encoding = {
        "x": axis("from", "non-zeros of a row", bin={"binned": True}, axis={"tickMinStep": 1}),
        "x2": {"field": "to"},
        "y": {
            "field": "rows",
            "type": "quantitative",
            "title": "rows",
            "scale": {"type": "symlog"},
        },
        "tooltip": tooltip(**{"from": "from", "last": "to", "rows": "rows"}),
    }
    mark = {"type": "bar", "color": COLOURS[0]}
    return framed(
        "row-lengths",
        "Rows by their number of non-zeros.",
        _LOW,
        width=_HALF,
        data={"values": values},
        mark=mark,
        encoding=encoding,
    )


def bands(shares: Sequence[float]) -> Chart:
    """Return the share of the entries by distance from the diagonal, in tenths of the longest."""
    values = [
        {"distance": f"{10 * k} to {10 * k + 10} %", "share": 100 * share} for k, share in enumerate(shares)
    ]
    order = [value["distance"] for value in values]
    encoding = {
        "x": {"field": "distance", "type": "ordinal", "sort": order, "title": "distance from the diagonal"},
        "y": axis("share", "% of the entries"),
        "tooltip": tooltip(distance="distance", share="% of the entries"),
    }
    mark = {"type": "bar", "color": COLOURS[0]}
    return framed(
        "bands",
        "Entries by distance from the diagonal.",
        _LOW,
        width=_HALF,
        data={"values": values},
        mark=mark,
        encoding=encoding,
    )


def machines(name: str, quantity: str, unit: str, rows: Sequence[Mapping[str, Any]]) -> Chart:
    """Return a quantity of each machine with its interval.

    `rows` have ``machine``, ``value``, ``low``, ``high`` (None where it is not known), and ``place``: what is
    known of its place among the others, in words.
    """
    order = [row["machine"] for row in rows]
    y = {"field": "machine", "type": "nominal", "sort": order, "title": None}
    shown = tooltip(machine="machine", value=unit, low="from", high="to", place="")
    shape = {"field": "place", "type": "nominal", "sort": None, "title": None}
    known = {"filter": "isValid(datum.value)"}
    layers: list[Spec] = [
        {
            "transform": [known, {"filter": "isValid(datum.low)"}],
            "mark": {"type": "rule", "strokeWidth": 5, "opacity": 0.35, "color": COLOURS[0]},
            "encoding": {"x": axis("low", unit, is_log=True), "x2": {"field": "high"}},
        },
        {
            "transform": [known],
            "mark": {"type": "point", "filled": True, "size": 90, "color": COLOURS[0], "opacity": 1},
            "encoding": {"x": axis("value", unit, is_log=True), "shape": shape},
        },
    ]
    for layer in layers:
        layer["encoding"] |= {"y": y, "tooltip": shown}
    said = f"Forecast {quantity} of all products on each machine, fastest first; the bar holds 90 of 100."
    return framed(name, said, max(60, _ROW * len(rows)), data={"values": list(rows)}, layer=layers)


def zoom() -> list[Spec]:
    """Return what lets a reader move and zoom a chart."""
    # With Ctrl, as a map: otherwise nobody could scroll past a chart.
    select = {"type": "interval", "zoom": "wheel![event.ctrlKey]"}
    return [{"name": "zoom", "select": select, "bind": "scales"}]


def milliseconds(seconds: float | None) -> float | None:
    """Return seconds as milliseconds."""
    return None if seconds is None else 1e3 * seconds
