"""Chart of the cost of an application: the share of each loop, forecast and measured."""

from __future__ import annotations

from typing import Any

from sparsecast.reports.charts.chart import COLOURS, GREY, WIDTH, Chart, Spec, axis, layer, spans, tooltip
from sparsecast.results.application import ApplicationCost, ApplicationRun
from sparsecast.system.texts import time

#: Pixels of a bar.
_BAR = 22


def shares(cost: ApplicationCost, run: ApplicationRun | None = None) -> Chart:
    """Return a bar for the share of each loop in the whole run, the largest forecast first.

    Next to it is the share in a `run`, if the loop was timed.
    """
    rows = _rows(cost, run)
    kinds = list(dict.fromkeys(row["what"] for row in rows))
    encoding: Spec = {
        "y": {"field": "loop", "type": "nominal", "sort": None, "title": None},
        "yOffset": {"field": "what", "sort": kinds},
        "tooltip": tooltip(
            {"loop": "loop", "what": "kind"}, share="share, %", low="from, %", high="to, %", time_s="time, s"
        ),
    }
    ends = [row["high"] or row["share"] for row in rows]
    x = axis("share", "share of the run, %")
    x["scale"] = {"domain": [0, 1.25 * max(ends)], "nice": False}
    scale = {"domain": kinds, "range": [COLOURS[0], GREY][: len(kinds)]}
    colour: Spec = {"field": "what", "title": None, "scale": scale}
    if not run:
        colour["legend"] = None
    end = {"calculate": "isValid(datum.low) ? max(datum.share, datum.high) : datum.share", "as": "end"}
    beyond = {**encoding, "x": {**x, "field": "end"}, "text": {"field": "text"}}
    encoding["x"] = x
    layers = [
        layer("bar", {**encoding, "color": colour}),
        spans(encoding, "x", "low", "high", width=2, opacity=1),
        {"transform": [end], **layer({"type": "text", "align": "left", "dx": 5}, beyond)},
    ]
    caption = "Share of each loop in the run; the line is the interval of the forecast."
    spec = {"data": {"values": rows}, "layer": layers, "width": WIDTH}
    return Chart("shares", caption, {**spec, "height": {"step": _BAR, "for": "offset"}})


def _rows(cost: ApplicationCost, run: ApplicationRun | None) -> list[dict[str, Any]]:
    expected = cost.iterations.expected
    whole_s = sum(loop.runs(expected) * loop.time_s for loop in cost.loops)
    measured = {
        loop.name: loop.runs(run.iterations) * run.loops[loop.name]
        for loop in cost.loops
        if run is not None and loop.name in run.loops
    }
    measured_s = sum(measured.values())
    rows = []
    for loop in sorted(cost.loops, key=lambda loop: -loop.runs(expected) * loop.time_s):
        ends_s = [
            None if end_s is None else loop.runs(expected) * end_s
            for end_s in (loop.time_s, loop.low_s, loop.high_s)
        ]
        marks = [("forecast", whole_s, ends_s)]
        if loop.name in measured:
            marks.append(("measured", measured_s, [measured[loop.name], None, None]))
        for what, total_s, parts_s in marks:
            share, low, high = (None if part_s is None else 100 * part_s / total_s for part_s in parts_s)
            text = f"{share:.2g} %, {time(parts_s[0]).replace(' us', ' µs')}"
            numbers = {"share": share, "low": low, "high": high, "time_s": parts_s[0]}
            rows.append({"loop": loop.name, "what": what, **numbers, "text": text})
    return rows
