"""The figure of the cost of an application: the share of each loop, and of what was measured of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sparsecast.reports.figures import COLOURS, drawing, error_bars
from sparsecast.reports.tables import time
from sparsecast.results.application import ApplicationCost, ApplicationRun

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class LoopShare:
    """What a loop takes of a whole run.

    Attributes
    ----------
    time_s : float
        Forecast seconds of all its runs.
    share, low, high : float, and float or None
        The same, and the ends of its interval, over the forecast of all loops.
    measured_s, measured_share : float or None
        None without a run, or where the run did not time this loop.
    """

    name: str
    time_s: float
    share: float
    low: float | None
    high: float | None
    measured_s: float | None = None
    measured_share: float | None = None


def loop_shares(cost: ApplicationCost, run: ApplicationRun | None = None) -> tuple[LoopShare, ...]:
    """Return the share of each loop, the largest forecast first."""
    expected = cost.iterations.expected
    whole_s = sum(loop.runs(expected) * loop.time_s for loop in cost.loops)
    measured = {}
    if run is not None:
        measured = {
            loop.name: loop.runs(run.iterations) * run.loops[loop.name]
            for loop in cost.loops
            if loop.name in run.loops
        }
    measured_s = sum(measured.values())
    found = []
    for loop in cost.loops:
        runs, own_s = loop.runs(expected), measured.get(loop.name)
        low, high = (None if end is None else runs * end / whole_s for end in (loop.low_s, loop.high_s))
        share = None if own_s is None else own_s / measured_s
        found.append(
            LoopShare(loop.name, runs * loop.time_s, runs * loop.time_s / whole_s, low, high, own_s, share)
        )
    return tuple(sorted(found, key=lambda each: -each.share))


def draw_cost(shares: tuple[LoopShare, ...], title: str, path: Path) -> None:
    """Draw bars of the loops' shares, forecast above measured, into a file of FILE_TYPES.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    is_measured = any(each.measured_s is not None for each in shares)
    thick = 0.38 if is_measured else 0.6
    with drawing(path, 7.2, 1.4 + (0.55 if is_measured else 0.36) * len(shares), title) as figure:
        ax = figure.subplots()
        places = [place - thick / 2 if is_measured else float(place) for place in range(len(shares))]
        values = [100 * each.share for each in shares]
        lows, highs = (
            [None if end is None else 100 * end for end in ends]
            for ends in ([each.low for each in shares], [each.high for each in shares])
        )
        bars = error_bars(values, lows, highs)
        ax.barh(places, values, thick, color=COLOURS[0], label="forecast, with its interval")
        ax.errorbar(values, places, xerr=bars, fmt="none", ecolor="black", capsize=3, linewidth=1)
        ends = [max(value, high or 0.0) for value, high in zip(values, highs, strict=True)]
        for place, each, end in zip(places, shares, ends, strict=True):
            _name(ax, end, place, _text(each.share, each.time_s))
        known = [(place + thick, each) for place, each in zip(places, shares, strict=True)]
        for place, each in known if is_measured else []:
            if each.measured_share is None:
                continue
            value = 100 * each.measured_share
            ax.barh(place, value, thick, color="white", edgecolor="black", hatch="////", linewidth=0.6)
            _name(ax, value, place, _text(each.measured_share, each.measured_s))
            ends.append(value)
        ax.set_xlim(0, 1.25 * max(ends))
        ax.set_yticks(range(len(shares)), [each.name for each in shares])
        ax.set_ylim(len(shares) - 0.5, -0.5)
        ax.grid(visible=False, axis="y")
        ax.set_xlabel("share of the run, %")
        _explain(ax, is_measured)


def _text(share: float, seconds: float | None) -> str:
    return f"{100 * share:.2g} %, {time(seconds).replace(' us', ' µs')}"


def _name(ax: Axes, value: float, place: float, text: str) -> None:
    ax.annotate(text, (value, place), xytext=(5, 0), textcoords="offset points", va="center", fontsize=8)


def _explain(ax: Axes, is_measured: bool) -> None:
    from matplotlib.patches import Patch

    handles = [Patch(facecolor=COLOURS[0], label="forecast, with its interval")]
    if is_measured:
        handles.append(Patch(facecolor="white", edgecolor="black", hatch="////", label="measured"))
    ax.legend(handles=handles, loc="lower right")
