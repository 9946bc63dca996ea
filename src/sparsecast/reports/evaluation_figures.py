"""The figure of an evaluation: forecast against measurement, one panel for each model."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sparsecast.errors import InputError
from sparsecast.reports.figures import Look, drawing, format_looks, hide, scale_axis
from sparsecast.results.evaluation import Evaluation, EvaluationRow, ModelScore

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Panels in one row of the figure.
_COLUMNS = 4

_EQUALITY, _AGAIN, _NOISE = "forecast = measured", "repeat noise, 90 %", "median noise"

_UNITS = {"time": "s", "energy": "J"}


@dataclass(frozen=True, slots=True)
class ForecastPanel:
    """What one panel shows.

    Attributes
    ----------
    points : dict of str to (tuple of float, tuple of float)
        For each format, what was measured and what was forecast.
    noise, noise_name : float or None, and str
        Half the width of the band around equality, relative to the measurement: 90 % of what was measured
        again differed by less. Without such measurements it is the median noise of the Records; None
        without either.
    """

    model: str
    unit: str
    title: str
    points: dict[str, tuple[tuple[float, ...], tuple[float, ...]]]
    noise: float | None
    noise_name: str


def forecast_panels(found: Evaluation) -> list[ForecastPanel]:
    """Return a panel for each model, the best first."""
    return [
        _panel(name, score, [row for row in found.rows if row.model == name])
        for name, score in found.models.items()
    ]


def _panel(name: str, score: ModelScore, rows: list[EvaluationRow]) -> ForecastPanel:
    points = {}
    for format_name in score.formats:
        own = [row for row in rows if row.estimate.candidate.format == format_name]
        points[format_name] = tuple(row.measured for row in own), tuple(row.estimate.value for row in own)
    errors = f"median error {100 * score.median_error:.1f} %, 90 % below {100 * score.p90_error:.0f} %"
    return ForecastPanel(name, _UNITS[score.quantity], f"{name}\n{errors}", points, *noise_band(score))


def noise_band(score: ModelScore) -> tuple[float | None, str]:
    """Return by how much a perfect forecast would differ from the measurements, and what told it."""
    return (score.repeat_p90, _AGAIN) if score.repeat_p90 is not None else (score.median_noise, _NOISE)


def draw_forecasts(panels: list[ForecastPanel], title: str, path: Path) -> None:
    """Draw at least one panel, on logarithmic axes, into a file of FILE_TYPES.

    Raises
    ------
    InputError
        If there is none, or the file cannot be written.
    """
    if not panels:
        raise InputError(f"figure {path} would show nothing: expected a forecast; evaluate other matrices")
    columns = min(len(panels), _COLUMNS)
    rows = math.ceil(len(panels) / columns)
    formats = sorted({name for panel in panels for name in panel.points})
    shown: dict[str, Any] = {}
    with drawing(path, 3.4 * columns + 1.5, 3.7 * rows + 0.5, title) as figure:
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for panel, ax in zip(panels, axes, strict=False):
            _draw_panel(ax, panel, format_looks(formats))
            handles, labels = ax.get_legend_handles_labels()
            shown |= dict(zip(labels, handles, strict=True))
        hide(axes[len(panels) :])
        named = (*(name.upper() for name in formats), _EQUALITY, _AGAIN, _NOISE)
        handles = [shown[label] for label in named if label in shown]
        figure.legend(handles=handles, loc="outside right upper")


def _draw_panel(ax: Axes, panel: ForecastPanel, own: Mapping[str, Look]) -> None:
    every = np.array([value for both in panel.points.values() for values in both for value in values])
    ends = np.array([every.min() / 1.5, every.max() * 1.5])
    if panel.noise is not None:
        below, above = ends / (1 + panel.noise), ends * (1 + panel.noise)
        ax.fill_between(ends, below, above, color="black", alpha=0.15, linewidth=0, label=panel.noise_name)
    ax.plot(ends, ends, color="black", linewidth=0.8, label=_EQUALITY)
    for name, (measured, forecast) in panel.points.items():
        look = own[name]
        ax.scatter(
            measured,
            forecast,
            s=14,
            alpha=0.7,
            color=look.colour,
            marker=look.mark,
            linewidth=0,
            label=name.upper(),
        )
    for axis in (ax.xaxis, ax.yaxis):
        scale_axis(axis, ends.tolist(), panel.unit)
    ax.set_xlim(*ends)
    ax.set_ylim(*ends)
    ax.set_aspect("equal")
    ax.set_title(panel.title)
    ax.set_xlabel("measured")
    ax.set_ylabel("forecast")
