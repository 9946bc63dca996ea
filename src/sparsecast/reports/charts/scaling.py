"""Chart of products on many ranks: time over ranks, a line for each algorithm."""

from __future__ import annotations

from collections.abc import Sequence

from sparsecast.errors import InputError
from sparsecast.models.clusters.cluster_model import ClusterForecast
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
    best: dict[tuple[str, int], ClusterForecast] = {}
    for forecast in sorted((choice.forecast for choice in choices), key=lambda forecast: forecast.time_s):
        way = forecast.configuration
        best.setdefault((way.algorithm, way.ranks), forecast)
    algorithms = sorted({algorithm for algorithm, _ in best})
    rows = [
        {
            "algorithm": algorithm,
            "format": forecast.configuration.format.upper(),
            "partition": forecast.configuration.partition,
            "ranks": ranks,
            "at": ranks * _APART ** (algorithms.index(algorithm) - (len(algorithms) - 1) / 2),
            "time_s": forecast.time_s,
            "low_s": forecast.low_s,
            "high_s": forecast.high_s,
        }
        for (algorithm, ranks), forecast in sorted(best.items(), key=lambda item: item[0])
    ]
    values = [forecast_s for it in best.values() for forecast_s in (it.time_s, it.low_s, it.high_s)]
    texts = {"algorithm": "algorithm", "format": "format", "partition": "partition"}
    numbers = {"ranks": "ranks", "time_s": "forecast, s", "low_s": "from, s", "high_s": "to, s"}
    encoding = {
        "x": counts_axis("at", "ranks", [ranks for _, ranks in best]),
        "y": axis("time_s", "forecast of one product", values, "s"),
        **look("algorithm", [algorithm for algorithm, _ in sorted(best)]),
        "tooltip": tooltip(texts, **numbers),
    }
    color = {key: value for key, value in encoding.items() if key != "shape"}
    layers = [layer("line", color), spans(color, "y", "low_s", "high_s", 3), layer(dot(70), encoding)]
    spec = {"data": {"values": rows}, "layer": layers, "width": WIDTH, "height": HEIGHT}
    return Chart("scaling", "Forecast time of one product over ranks; bars are intervals.", spec)
