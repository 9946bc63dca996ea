"""Charts of labels and of errors: figures 3 and 5 of the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sparsecast.papers.barreda_2020.label_files import ENERGIES, BlockLabels
from sparsecast.papers.barreda_2020.network_training import TrainedNetwork
from sparsecast.reports.charts.chart import Chart, Spec, axis, layer, look, panels, tooltip

_WIDTH, _HEIGHT = 300, 220

#: Blocks of a matrix that are drawn, at each frequency.
_DOTS = 3


def dispersion(labels: Mapping[float, Sequence[BlockLabels]]) -> Chart:
    """Return nanojoules an entry over nanoseconds, by frequency (figure 3)."""
    charts = []
    for quantity in ENERGIES:
        rows = [
            row for ghz, some in labels.items() for matrix in some for row in _dots(matrix, quantity, ghz)
        ]
        x = axis("ns", "ns an entry", [row["ns"] for row in rows], is_log=True)
        y = axis("nj", "nJ an entry", [row["nj"] for row in rows], is_log=True)
        charts.append(_points(quantity, rows, x, y))
    return panels("dispersion", "", charts, 3)


def _dots(labels: BlockLabels, quantity: str, ghz: float) -> list[dict[str, Any]]:
    """Return blocks that have both labels."""
    (timed, ns, _), (counted, nj, _) = labels.of("time"), labels.of(quantity)
    _, first, second = np.intersect1d(timed, counted, return_indices=True)
    step = -(-len(first) // _DOTS) or 1
    pairs = zip(ns[first][::step].tolist(), nj[second][::step].tolist(), strict=True)
    return [{"matrix": labels.name, "GHz": f"{ghz:g}", "ns": time, "nj": joules} for time, joules in pairs]


def matrices_off(networks: Sequence[TrainedNetwork]) -> Chart:
    """Return the errors of matrices by frequency, sorted by those at the lowest (figure 5)."""
    charts = []
    for quantity in dict.fromkeys(network.card.quantity for network in networks):
        cards = [network.card for network in networks if network.card.quantity == quantity]
        lowest = min(cards, key=lambda card: card.frequency_ghz or 0.0).matrix_errors
        rows: list[dict[str, Any]] = [
            {"matrix": matrix, "GHz": f"{card.frequency_ghz:g}", "error": 100 * error}
            for card in cards
            for matrix, error in card.matrix_errors.items()
        ]
        order = sorted(lowest, key=lambda matrix: lowest[matrix])
        x = {"field": "matrix", "type": "nominal", "title": None, "sort": order, "axis": {"labelAngle": -40}}
        y = axis("error", "error, %", [row["error"] for row in rows], is_log=True)
        charts.append(_points(quantity, rows, x, y))
    return panels("matrices_off", "", charts, 2)


def _points(caption: str, rows: Sequence[Mapping[str, Any]], x: Spec, y: Spec) -> Chart:
    looks = look("GHz", [row["GHz"] for row in rows])
    shown = tooltip({"matrix": "matrix", "GHz": "GHz"}, **{y["field"]: y["title"]})
    points = layer({"type": "point", "clip": True}, {"x": x, "y": y, **looks, "tooltip": shown}, rows)
    return Chart(caption, caption, {**points, "width": _WIDTH, "height": _HEIGHT})
