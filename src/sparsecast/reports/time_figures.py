"""Figures of times: forecasts with their intervals, and what was measured beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sparsecast.errors import InputError
from sparsecast.models.clusters.cluster_model import ClusterForecast
from sparsecast.records import Candidate, Configuration, DistributedRecord, Forecast, Record
from sparsecast.reports.figures import MEASURED, Look, drawing, error_bars, format_looks, looks, scale_axis
from sparsecast.results.cluster import MeasuredProduct

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Height of a line in a panel, and of what else a panel has, in inches.
_LINE, _REST = 0.27, 0.85

#: Lines between a forecast and the middle of its line, where a measurement stands beside it.
_APART = 0.15

#: Lines that fit on a page: of a longer figure nobody can read a line.
_MOST_LINES = 400


@dataclass(frozen=True, slots=True)
class TimeRow:
    """One way of doing a product, in seconds; None is what nobody forecast, or measured.

    Attributes
    ----------
    label : str
    group : str
        What its colour and mark stand for: a format, a machine or an algorithm.
    noise : float or None
        Of the measurement, relative.
    """

    label: str
    group: str
    time_s: float | None
    low_s: float | None = None
    high_s: float | None = None
    measured_s: float | None = None
    noise: float | None = None


@dataclass(frozen=True, slots=True)
class TimePanel:
    """The rows of one matrix, from top to bottom."""

    title: str
    rows: tuple[TimeRow, ...]


def forecast_rows(items: Iterable[Forecast]) -> tuple[TimeRow, ...]:
    """Return a row for each Forecast, the fastest first; what a probe measured is measured."""
    ordered = sorted(items, key=lambda item: item.time_s)
    labels = _labels([item.candidate for item in ordered])
    return tuple(_forecast_row(label, item) for label, item in zip(labels, ordered, strict=True))


def _forecast_row(label: str, item: Forecast) -> TimeRow:
    name = item.candidate.format
    if item.basis == "measured":  # by a probe: its interval is the noise
        noise = None if item.high_s is None else item.high_s / item.time_s - 1
        return TimeRow(label, name, None, measured_s=item.time_s, noise=noise)
    shown = label if item.basis == "model" else f"{label} ({item.basis})"
    return TimeRow(shown, name, item.time_s, item.low_s, item.high_s)


def measured_rows(records: Iterable[Record], expected: Mapping[Candidate, Forecast]) -> tuple[TimeRow, ...]:
    """Return a row for each measurement, the fastest first, with its forecast where there is one."""
    ordered = sorted(records, key=lambda record: record.time_s)
    labels = _labels([record.candidate for record in ordered])
    rows = []
    for label, record in zip(labels, ordered, strict=True):
        forecast = expected.get(record.candidate)
        hz = record.conditions.frequency_hz if record.conditions else None
        repeated = labels.count(label) > 1 and hz is not None
        shown = f"{label}, {(hz or 0) / 1e9:.2f} GHz" if repeated else label
        rows.append(_row(shown, record.candidate.format, record, forecast))
    return tuple(rows)


def rank_rows(
    measured: Iterable[MeasuredProduct], expected: Mapping[Configuration, ClusterForecast]
) -> tuple[TimeRow, ...]:
    """Return a row for each product on many ranks, the fastest first."""
    rows = []
    for each in sorted(measured, key=lambda each: each.record.time_s):
        way = each.record.configuration
        forecast = expected.get(way)
        formats = " + ".join(dict.fromkeys((way.format.upper(), way.remote_format.upper())))
        label = f"{way.algorithm}, {formats}, {way.partition}"
        rows.append(_row(label, way.algorithm, each.record, forecast))
    return tuple(rows)


def _row(
    label: str, group: str, record: Record | DistributedRecord, forecast: Forecast | ClusterForecast | None
) -> TimeRow:
    if forecast is None:
        return TimeRow(label, group, None, None, None, record.time_s, record.noise)
    ends = forecast.time_s, forecast.low_s, forecast.high_s
    return TimeRow(label, group, *ends, record.time_s, record.noise)


def _labels(candidates: Sequence[Candidate]) -> list[str]:
    """Return format and kernel of each, with its parameters where these alone tell it from another."""
    seen = Counter((each.format, each.kernel) for each in candidates)
    return [
        ", ".join(
            (
                each.format.upper(),
                each.kernel,
                *(
                    f"{name} {'x'.join(map(str, value)) if isinstance(value, tuple) else value}"
                    for name, value in each.parameters.items()
                    if seen[each.format, each.kernel] > 1
                ),
            )
        )
        for each in candidates
    ]


def refuse_many(path: Path, lines: int) -> None:
    """Raise if a figure would have more lines than anybody can read."""
    if lines > _MOST_LINES:
        raise InputError(
            f"figure {path} would show {lines:,} lines: expected at most {_MOST_LINES}; ask for "
            f"fewer matrices"
        )


def draw_times(panels: Sequence[TimePanel], title: str, label: str, path: Path) -> None:
    """Draw a panel for each matrix, with a line for each way of doing a product, into a file of FILE_TYPES.

    Raises
    ------
    InputError
        If there is nothing to show, or too much, or if the file cannot be written.
    """
    shown = [panel for panel in panels if panel.rows]
    if not shown:
        raise InputError(f"figure {path} would show nothing: expected a time; ask for other formats")
    refuse_many(path, sum(len(panel.rows) for panel in shown))
    ratios = [_REST + _LINE * len(panel.rows) for panel in shown]
    rows = [row for panel in shown for row in panel.rows]
    groups = sorted({row.group for row in rows})
    own = (format_looks if set(groups) <= set(format_looks(())) else looks)(groups)
    has_measured = any(row.measured_s is not None for row in rows)
    has_both = has_measured and any(row.time_s is not None for row in rows)
    with drawing(path, 7.2, sum(ratios) + 0.55 + 0.25 * has_both, title) as figure:
        axes = figure.subplots(len(shown), 1, squeeze=False, height_ratios=ratios)[:, 0]
        for panel, ax in zip(shown, axes, strict=True):
            _draw_panel(ax, panel, own)
            ax.set_xlabel(label)
        if has_both:
            _explain(figure, rows)


def _draw_panel(ax: Axes, panel: TimePanel, own: Mapping[str, Look]) -> None:
    for place, row in enumerate(panel.rows):
        look = own[row.group]
        apart = _APART if row.time_s is not None and row.measured_s is not None else 0.0
        if row.time_s is not None:
            below, above = error_bars([row.time_s], [row.low_s], [row.high_s])
            ax.errorbar(
                row.time_s,
                place - apart,
                xerr=[below, above],
                color=look.colour,
                marker=look.mark,
                capsize=3,
                markersize=6,
            )
        if row.measured_s is not None:
            noise = None if row.noise is None else row.noise * row.measured_s
            ax.errorbar(
                row.measured_s, place + apart, xerr=noise, capsize=2, linewidth=0.9, **MEASURED, zorder=3
            )
    ax.set_yticks(range(len(panel.rows)), [row.label for row in panel.rows])
    ax.set_ylim(len(panel.rows) - 0.5, -0.5)
    ax.grid(visible=False, axis="y")
    ax.set_title(panel.title)
    every = [v for row in panel.rows for v in (row.time_s, row.low_s, row.high_s, row.measured_s)]
    scale_axis(ax.xaxis, every, "s")


def _explain(figure: Figure, rows: Sequence[TimeRow]) -> None:
    from matplotlib.lines import Line2D

    has_interval = any(row.low_s is not None or row.high_s is not None for row in rows)
    has_noise = any(row.noise is not None for row in rows)
    forecast = "forecast, with its interval" if has_interval else "forecast"
    handles = [
        Line2D([], [], color="#555555", marker="o", label=forecast),
        Line2D([], [], **MEASURED, label="measured, with its noise" if has_noise else "measured"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
