"""Charts of plans: the row blocks over the matrix, and the cost of products with the conversion."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from sparsecast.records import Forecast
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
from sparsecast.reports.charts.patterns import pattern
from sparsecast.results.placement import Placement, Placements
from sparsecast.results.plan import Plan, PlanCheck
from sparsecast.system.texts import counted

#: Points of a line over products, and the greatest number of products in the chart of break-even.
_POINTS, _MOST = 49, 1_000_000

#: The colour of a plan of several formats.
_PLAN = "#141414"

Row = dict[str, Any]


def plan(
    A: csr_array[Any], chosen: Plan, check: PlanCheck | None = None, placements: Placements | None = None
) -> Chart:
    """Return the row blocks of a plan over the matrix, and the total time over the number of products."""
    return beside("plan", [pattern(A, chosen.blocks)], [totals(chosen, check, placements)])


def totals(chosen: Plan, check: PlanCheck | None, placements: Placements | None) -> Chart:
    """Return conversion and products over their number, the break-even, and the measured times."""
    rows = _lines(chosen, check, placements)
    even = chosen.break_even_products if placements is None else placements.break_even_products
    even = even if even and even > 1 else None
    most = 10 * max(chosen.products, even or 1)
    products = np.unique(np.geomspace(1, most, _POINTS).round())
    points = [
        {"way": row["way"], "products": int(n), "time_s": row["start_s"] + float(n) * row["product_s"]}
        for row in rows
        for n in products
    ]
    x = axis("products", "products", [1, most])
    y = axis("time_s", "conversion and all products", [point["time_s"] for point in points], "s")
    encoding: Spec = {"x": x, "y": y, **look("way", [row["way"] for row in rows])}
    if placements is None:  # plain CSR has the colour of CSR
        encoding["color"]["scale"]["range"] = [_PLAN, *format_look(["CSR"])["color"]["scale"]["range"]][
            : len(rows)
        ]
    color = {key: value for key, value in encoding.items() if key != "shape"}
    texts = {"way": "way", "products": "products"}
    shown = tooltip(texts, time_s="forecast, s", low_s="from, s", high_s="to, s")
    hollow = {"type": "point", "shape": "diamond", "size": 160, "color": "black"}
    measured = {"y": {**y, "field": "measured_s"}, "tooltip": tooltip(texts, measured_s="measured, s")}
    layers: list[Spec] = [
        layer("line", color, points),
        spans(color, "y", "low_s", "high_s", 4),
        layer(dot(), {**encoding, "tooltip": shown}),
        {"transform": [{"filter": "isValid(datum.measured_s)"}], **layer(hollow, {"x": x, **measured})},
    ]
    caption = f"Marks and intervals are of {counted(chosen.products, 'product')}."
    if check is not None:
        caption += " Hollow: measured."
    if even is not None:
        caption += f" The conversion pays off after {counted(even, 'product')} (dotted)."
        layers.append(layer({"type": "rule", "strokeDash": [2, 3], "color": GREY}, {"x": {"datum": even}}))
    spec = {"data": {"values": rows}, "layer": layers, "width": WIDTH, "height": HEIGHT}
    return Chart("totals", caption, spec)


def _lines(chosen: Plan, check: PlanCheck | None, placements: Placements | None) -> list[Row]:
    """Return the time before the first product and per product of each way; plain CSR last, if different."""
    checked = None if check is None else (check.convert_s, check.time_s)
    # Each with its name and the measured seconds to convert and of a product.
    ways: list[tuple[str, Placement, tuple[float, float] | None]] = []
    if placements is not None:
        for it in placements.placements:
            ways.append((f"{it.machine}, {it.formats}", it, checked if it is placements.planned else None))
    else:
        planned = Placement("", "", chosen, chosen.products)
        ways.append((f"the plan: {planned.formats}", planned, checked))
        if [block.candidate for block in chosen.blocks] != [chosen.baseline.candidate]:
            csr = replace(planned, way=chosen.csr_alone(chosen.baseline.time_s))
            measured = (0.0, check.baseline_s) if check and not csr.before_s else None
            ways.append(("plain CSR", csr, measured))
    return [
        {
            "way": way,
            "products": placement.products,
            "start_s": placement.before_s,
            "product_s": placement.way.time_s,
            "time_s": placement.total.value,
            "low_s": placement.total.low,
            "high_s": placement.total.high,
            "measured_s": measured and measured[0] + placement.products * measured[1],
        }
        for way, placement, measured in ways
    ]


def break_even(forecasts: Iterable[Forecast]) -> Chart:
    """Return the time of a number of products, conversion included, relative to that of CSR."""
    convertible = [forecast for forecast in forecasts if forecast.convert_s is not None]
    csr = next((forecast for forecast in convertible if forecast.candidate.format == "csr"), None)
    products = [int(n) for n in np.geomspace(1, _MOST, _POINTS).round()]
    rows: list[Row] = []
    for forecast in convertible:
        for n in products:
            if csr is not None:
                total_s, csr_s = ((it.convert_s or 0.0) + n * it.time_s for it in (forecast, csr))
                ratio = {"ratio": total_s / csr_s, "of CSR": f"{total_s / csr_s:.3g}"}
                rows.append({"format": forecast.candidate.format.upper(), "products": n, **ratio})
    encoding = {
        "x": axis("products", "products", products),
        "y": axis("ratio", "time over CSR's", [row["ratio"] for row in rows]),
        "color": format_look(row["format"] for row in rows)["color"],
        "tooltip": tooltip({"format": "format", "products": "products", "of CSR": "time over CSR's"}),
    }
    caption = "Conversion and products together, over CSR alone: below 1 the conversion has paid off."
    spec = {"data": {"values": rows}, "mark": "line", "encoding": encoding, "params": zoom()}
    return Chart("break-even", caption, {**spec, "width": WIDTH, "height": HEIGHT})
