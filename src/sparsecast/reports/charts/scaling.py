"""Chart of products on many ranks: time over ranks, a line for each algorithm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sparsecast.errors import InputError
from sparsecast.reports.charts.chart import (
    HEIGHT,
    WIDTH,
    Chart,
    axis,
    counts_axis,
    dot,
    layer,
    look,
    spans,
    tooltip,
)
from sparsecast.results.cluster import ClusterChoice

#: Horizontal offset of lines, so that no interval hides another.
_APART = 1.03


def scaling(choices: Sequence[ClusterChoice]) -> Chart:
    """Return the time of each algorithm over ranks, in its fastest format and partition."""
    if not choices:
        raise InputError("a figure would show nothing: expected a forecast; ask for other ranks")
    rows = _rows(choices)
    x = counts_axis("at", "ranks", [row["ranks"] for row in rows])
    values = [row[key] for row in rows for key in ("time_s", "low_s", "high_s")]
    y = axis("time_s", "forecast of one product", values, "s")
    encoding = {
        "x": x,
        "y": y,
        **look("algorithm", [row["algorithm"] for row in rows]),
        "tooltip": tooltip(
            {"algorithm": "algorithm", "format": "format", "partition": "partition"},
            ranks="ranks",
            time_s="forecast, s",
            low_s="from, s",
            high_s="to, s",
        ),
    }
    color = {key: value for key, value in encoding.items() if key != "shape"}
    layers = [layer("line", color), spans(color, "y", "low_s", "high_s", 3), layer(dot(70), encoding)]
    spec = {"data": {"values": rows}, "layer": layers, "width": WIDTH, "height": HEIGHT}
    return Chart("scaling", "Forecast time of one product over ranks; bars are intervals.", spec)


def _rows(choices: Sequence[ClusterChoice]) -> list[dict[str, Any]]:
    best: dict[tuple[str, int], ClusterChoice] = {}
    for choice in sorted(choices, key=lambda choice: choice.forecast.time_s):
        way = choice.forecast.configuration
        best.setdefault((way.algorithm, way.ranks), choice)
    algorithms = sorted({algorithm for algorithm, _ in best})
    rows = []
    for (algorithm, ranks), choice in sorted(best.items(), key=lambda item: item[0]):
        forecast = choice.forecast
        place = algorithms.index(algorithm) - (len(algorithms) - 1) / 2
        rows.append(
            {
                "algorithm": algorithm,
                "format": forecast.configuration.format.upper(),
                "partition": forecast.configuration.partition,
                "ranks": ranks,
                "at": ranks * _APART**place,
                "time_s": forecast.time_s,
                "low_s": forecast.low_s,
                "high_s": forecast.high_s,
            }
        )
    return rows
