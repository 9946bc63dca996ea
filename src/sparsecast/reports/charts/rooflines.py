"""Charts of a machine: its bandwidths over the size of the data, and products under its roofline.

Williams, Waterman and Patterson (2009). There is no roof of operations, because none was measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sparsecast.devices import threads_text
from sparsecast.errors import InputError
from sparsecast.machines.profile import Profile
from sparsecast.records import Bandwidth, Candidate, Forecast, Record, product_flops, reads_of
from sparsecast.reports.charts.chart import (
    GREY,
    HEIGHT,
    WIDTH,
    Chart,
    Spec,
    axis,
    beside,
    dot,
    format_look,
    layer,
    look,
    spans,
    tooltip,
    zoom,
)
from sparsecast.system.tabular import grouped
from sparsecast.system.texts import size

#: Pixels of a chart next to another one.
_HALF = 440

#: Least ratio of the speeds of two named roofs.
_APART = 1.4

#: Shapes of forecasts and measurements.
_SHAPES = ("circle", "diamond")

Row = dict[str, Any]


def machine(profile: Profile) -> Chart:
    """Return the bandwidths of a machine, next to its measured products.

    The products have the device, type and threads of most Records. An InputError refuses a profile without
    either.
    """
    charts = [bandwidths(profile)] if profile.bandwidths else []
    warm = [record for record in profile.records if record.regime == "warm" and record.traffic_bytes]
    if warm:
        alike = grouped(warm, lambda r: (r.candidate.dtype, r.candidate.threads, r.candidate.device))
        setting = max(alike, key=lambda setting: (len(alike[setting]), setting))
        dtype, threads, device = setting
        points = [
            point(record.candidate, "measured", record.nnz, record.traffic_bytes, record.time_s)
            for record in alike[setting]
            if record.nnz
        ]
        reads = reads_of(profile.bandwidths, device, threads)
        # The roofs: the highest bandwidth, and that of the largest data.
        fastest = [max(reads, key=lambda read: read.bandwidth_bytes_per_s)] if reads else []
        roofs = list(dict.fromkeys((*fastest, *reads[-1:])))
        caption = f"Products in {dtype}, {threads_text(device, threads)}, under reads of arrays (dashed)."
        charts.append(roofline(points, roofs, caption, _HALF))
    if not charts:
        raise InputError(
            "a figure would show nothing: expected a profile with bandwidths or Records; name another"
        )
    return beside("machine", *([chart] for chart in charts))


def bandwidths(profile: Profile) -> Chart:
    """Return the measured bandwidth of each kind over the bytes, with the caches."""
    rows: list[Row] = [
        {
            "stream": " ".join(filter(None, (b.device, threads_text(b.device, b.threads), b.kind))),
            "bytes": b.bytes,
            "speed": b.bandwidth_bytes_per_s,
            "low": None if b.noise is None else b.bandwidth_bytes_per_s / (1 + b.noise),
            "high": None if b.noise is None else b.bandwidth_bytes_per_s * (1 + b.noise),
        }
        for b in profile.bandwidths
    ]
    rows.sort(key=lambda row: (row["stream"], row["bytes"]))
    caches = [{"cache": f"L{cache.level}", "bytes": cache.bytes} for cache in profile.machine.caches]
    x = axis("bytes", "bytes that one call moves", [row["bytes"] for row in rows], "B")
    y = axis("speed", "bandwidth", [row["speed"] for row in rows], "B/s")
    encoding: Spec = {
        "x": x,
        "y": y,
        **look("stream", [row["stream"] for row in rows]),
        "tooltip": tooltip(
            {"stream": "stream"}, bytes="bytes", speed="bandwidth, B/s", low="from", high="to"
        ),
    }
    color = {key: value for key, value in encoding.items() if key != "shape"}
    named = {"x": x, "y": {"value": 8}, "text": {"field": "cache"}}
    layers = [
        layer("line", color),
        layer(dot(60), encoding),
        spans(color, "y", "low", "high", 3),
        layer({"type": "rule", "strokeDash": [2, 3], "color": GREY}, {"x": x}, caches),
        layer({"type": "text", "align": "left", "dx": 3, "color": GREY}, named, caches),
    ]
    spec = {"data": {"values": rows}, "layer": layers, "width": _HALF, "height": HEIGHT}
    return Chart("bandwidths", "Bandwidths with their noise; dotted: caches.", spec)


def point(candidate: Candidate, what: str, nnz: int, moved_bytes: float, time_s: float) -> Row:
    """Return a product as a point of a roofline."""
    flops = product_flops(nnz, candidate.dtype)
    intensity, speed = flops / max(moved_bytes, 1), flops / time_s
    return {"format": candidate.format.upper(), "what": what, "intensity": intensity, "speed": speed}


def forecast_points(forecasts: Iterable[Forecast], measured: Mapping[str, Record], nnz: int) -> list[Row]:
    """Return the points of Forecasts, and of measurements of the same formats."""
    points = []
    for forecast in forecasts:
        points.append(point(forecast.candidate, "forecast", nnz, forecast.bytes, forecast.time_s))
        if record := measured.get(forecast.candidate.format):
            points.append(point(forecast.candidate, "measured", nnz, forecast.bytes, record.time_s))
    return points


def roofline(points: Sequence[Row], roofs: Sequence[Bandwidth], caption: str, width: int = WIDTH) -> Chart:
    """Return speeds of products over their flops per byte, under bandwidths as dashed lines."""
    intensities = [row["intensity"] for row in points]
    lines = [
        {"array": size(roof.bytes), "intensity": intensity, "speed": intensity * roof.bandwidth_bytes_per_s}
        for roof in roofs
        for intensity in (min(intensities) / 1.3, max(intensities) * 1.3)
    ]
    x = axis("intensity", "FLOP per byte", intensities, is_log=True)
    y = axis("speed", "speed", [row["speed"] for row in (*points, *lines)], "FLOP/s", is_log=True)
    kinds = sorted({row["what"] for row in points})
    shown = format_look(row["format"] for row in points)
    if len(kinds) > 1:
        shown["shape"] = {"field": "what", "title": None, "scale": {"domain": kinds, "range": _SHAPES}}
    texts = {"format": "format", "what": "kind"}
    shown["tooltip"] = tooltip(texts, intensity="FLOP per byte", speed="speed, FLOP/s")
    places, array = {"x": x, "y": y}, {"field": "array"}
    layers = [{**layer({**dot(60), "opacity": 0.8}, {**places, **shown}, points), "params": zoom()}]
    if lines:
        named: list[Row] = []  # the right ends of lines whose names do not overlap, slow ones first
        for end in sorted(lines[1::2], key=lambda line: float(line["speed"])):
            if not named or end["speed"] > _APART * named[-1]["speed"]:
                named.append(end)
        of_line = {**places, "detail": array, "tooltip": tooltip({"array": "reads of an array of"})}
        name = {"type": "text", "align": "right", "dy": -7, "color": GREY}
        layers = [
            layer({"type": "line", "color": GREY, "strokeDash": [5, 3]}, of_line, lines),
            layer(name, {**places, "text": array}, named),
            *layers,
        ]
    return Chart("roofline", caption, {"layer": layers, "width": width, "height": HEIGHT})
