"""The figure of the five-minute benchmark: speed over dimension and density, and of each block size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sparsecast.machines.machine import Machine
from sparsecast.papers.gahvari_2007.search_space import (
    NNZ_PER_ROW,
    UNBLOCKED,
    Point,
    Series,
    problem_bytes,
)
from sparsecast.papers.gahvari_2007.summary import Rating, Summary, speeds_of
from sparsecast.records import VALUE_BYTES
from sparsecast.reports.figures import COLOURS, drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: The figures of a Summary that are lines, with their words and the dashes of their lines.
_LINES = (
    ("unblocked_max_mflops", "unblocked maximum", ":"),
    ("unblocked_median_mflops", "unblocked median", "--"),
    ("blocked_max_mflops", "blocked maximum", "-."),
    ("blocked_median_mflops", "blocked median", "-"),
)


@dataclass(frozen=True, slots=True)
class SpeedMap:
    """Speeds of one series over dimension and non-zeros a row, as in Figure 7 of Gahvari et al. (2007).

    Attributes
    ----------
    dimensions, nnz_per_row, mflops : tuple
        One element a measured point.
    cache_bytes : int
        Of the last cache, which tells small problems from medium and large ones; 0 where it is not known.
    value_bytes : int
    """

    title: str
    dimensions: tuple[int, ...]
    nnz_per_row: tuple[int, ...]
    mflops: tuple[float, ...]
    cache_bytes: int
    value_bytes: int


def speed_maps(rating: Rating) -> list[SpeedMap]:
    """Return the maps of the matrices without blocks, and of the block size with the highest median."""
    by_series = _by_series(rating)
    shown = [UNBLOCKED] if UNBLOCKED in by_series else []
    blocked = [series for series in by_series if series != UNBLOCKED and not series.is_symmetric]
    if blocked:
        shown.append(max(blocked, key=lambda series: float(np.median(list(by_series[series].values())))))
    return [_speed_map(series, by_series[series], rating) for series in shown]


def _by_series(rating: Rating) -> dict[Series, dict[Point, float]]:
    found: dict[Series, dict[Point, float]] = {}
    for point, speed in speeds_of(rating.records).items():
        found.setdefault(point.series, {})[point] = speed
    return found


@dataclass(frozen=True, slots=True)
class SeriesSpeed:
    """Measured speeds of one block size in MFLOP/s: median, quartiles, and the ends."""

    name: str
    is_blocked: bool
    median: float
    quartiles: tuple[float, float]
    ends: tuple[float, float]


def series_speeds(rating: Rating) -> list[SeriesSpeed]:
    """Return the speeds of each block size, the highest median first."""
    found = []
    for series, own in _by_series(rating).items():
        least, lower, median, upper, most = np.percentile(list(own.values()), (0, 25, 50, 75, 100)).tolist()
        is_blocked = series != UNBLOCKED and not series.is_symmetric
        found.append(SeriesSpeed(series.name, is_blocked, median, (lower, upper), (least, most)))
    return sorted(found, key=lambda each: -each.median)


def _speed_map(series: Series, speeds: Mapping[Point, float], rating: Rating) -> SpeedMap:
    what = "no blocks, CSR" if series == UNBLOCKED else f"blocks of {series.name}, BCSR: the fastest size"
    return SpeedMap(
        what,
        tuple(point.dimension for point in speeds),
        tuple(point.nnz_per_row for point in speeds),
        tuple(speeds.values()),
        rating.cache_bytes,
        VALUE_BYTES[rating.dtype],
    )


def draw_bench(
    maps: Sequence[SpeedMap], speeds: Sequence[SeriesSpeed], summary: Summary, title: str, path: Path
) -> None:
    """Draw at least one map, all with one scale of colours, and below them the block sizes, into a file.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    from matplotlib.colors import Normalize

    with drawing(path, 5.0 * len(maps) + 1.2, 7.4, title) as figure:
        grid = figure.add_gridspec(2, len(maps), height_ratios=(1.1, 1))
        axes = [figure.add_subplot(grid[0, place]) for place in range(len(maps))]
        every = [speed for each in maps for speed in each.mflops]
        scale = Normalize(min(every), max(every))
        for each, ax in zip(maps, axes, strict=True):
            drawn = ax.scatter(
                each.dimensions, each.nnz_per_row, c=each.mflops, norm=scale, s=50, cmap="cividis"
            )
            ax.set_xscale("log", base=2)
            ax.xaxis.set_major_formatter(_dimension)
            ax.set_title(each.title)
            ax.set_xlabel("dimension")
            ax.grid(visible=False)
            _mark_sizes(ax, each)
        axes[0].set_ylabel("non-zeros a row")
        figure.colorbar(drawn, ax=axes, label="MFLOP/s")
        _draw_series(figure.add_subplot(grid[1, :]), speeds, summary)


def _dimension(value: float, place: float) -> str:
    """Return a power of 2 in words, such as 64 Ki."""
    for unit, count in (("Mi", 1 << 20), ("Ki", 1 << 10)):
        if value >= count:
            return f"{value / count:g} {unit}"
    return f"{value:g}"


def _draw_series(ax: Axes, speeds: Sequence[SeriesSpeed], summary: Summary) -> None:
    """Draw median, quartiles and ends of each block size, and the figures of the machine as lines."""
    for place, each in enumerate(speeds):
        colour = COLOURS[0] if each.is_blocked else COLOURS[3]
        ax.vlines(place, *each.ends, color=colour, linewidth=0.8)
        ax.vlines(place, *each.quartiles, color=colour, linewidth=5, alpha=0.5)
        ax.plot(place, each.median, color=colour, marker="o" if each.is_blocked else "s", markersize=4)
    for name, words, dashes in _LINES:
        value = getattr(summary, name)
        if value is not None:
            label = f"{words}: {value:,.0f}"
            ax.axhline(value, color="black", linewidth=0.9, linestyle=dashes, label=label)
    ax.set_xticks(range(len(speeds)), [each.name for each in speeds], rotation=90)
    ax.set_xlim(-0.7, len(speeds) - 0.3)
    ax.set_ylim(0, None)
    ax.grid(visible=False, axis="x")
    ax.set_ylabel("MFLOP/s")
    ax.set_xlabel("block size (squares: no blocks); dot: median, bar: quartiles, line: least to most")
    if ax.get_legend_handles_labels()[0]:
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, 1.16), ncols=4)


def _mark_sizes(ax: Axes, shown: SpeedMap) -> None:
    """Draw the lines at which problems become medium and large, and name what lies between them."""
    lengths = np.linspace(NNZ_PER_ROW[0] - 0.5, NNZ_PER_ROW[-1] + 0.5, 30)
    ax.set_ylim(lengths[0] - 0.5, lengths[-1] + 1.5)
    ax.set_yticks(NNZ_PER_ROW[::2])
    if not shown.cache_bytes:
        return
    small_until = shown.cache_bytes / np.array([problem_bytes(1, k, shown.value_bytes) for k in lengths])
    medium_until = np.full(len(lengths), shown.cache_bytes / shown.value_bytes)
    low, high = min(shown.dimensions) / 1.5, max(shown.dimensions) * 1.5
    begin = low
    for name, border in (("small", small_until), ("medium", medium_until), ("large", None)):
        end = high if border is None else min(high, float(border[-1]))
        if begin < end:
            middle = float(np.sqrt(max(begin, low) * end))
            ax.text(middle, lengths[-1] + 0.6, name, ha="center", va="center")
        if border is not None and low < border[-1] < high:
            ax.plot(border, lengths, color="black", linewidth=1.2)
        begin = max(begin, end)
    ax.set_xlim(low, high)


def speed_title(rating: Rating, machine: Machine) -> str:
    """Return the title of a rating's maps."""
    return f"{machine.name if machine.gpu else machine.processor}: {rating.setting}"
