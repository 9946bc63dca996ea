"""Figure of the choice among products on many ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sparsecast.errors import InputError
from sparsecast.reports.figures import draw_counts, drawing, error_bars, looks, scale_axis
from sparsecast.results.cluster import ClusterChoice


@dataclass(frozen=True, slots=True)
class Scaling:
    """Times of an algorithm over ranks, in the format and partition that is fastest there.

    Attributes
    ----------
    low_s, high_s : tuple of float, or None
        None unless every point has an interval.
    """

    algorithm: str
    ranks: tuple[int, ...]
    time_s: tuple[float, ...]
    low_s: tuple[float, ...] | None
    high_s: tuple[float, ...] | None


def scalings(found: Sequence[ClusterChoice]) -> list[Scaling]:
    """Return the line of each algorithm, by its name."""
    best: dict[tuple[str, int], ClusterChoice] = {}
    for each in sorted(found, key=lambda choice: choice.forecast.time_s):
        way = each.forecast.configuration
        best.setdefault((way.algorithm, way.ranks), each)
    lines = []
    for algorithm in sorted({name for name, _ in best}):
        points = [best[key].forecast for key in sorted(best) if key[0] == algorithm]
        lows = [each.low_s for each in points if each.low_s is not None]
        highs = [each.high_s for each in points if each.high_s is not None]
        is_known = len(lows) == len(highs) == len(points)
        lines.append(
            Scaling(
                algorithm,
                tuple(each.configuration.ranks for each in points),
                tuple(each.time_s for each in points),
                tuple(lows) if is_known else None,
                tuple(highs) if is_known else None,
            )
        )
    return lines


def draw(lines: Sequence[Scaling], title: str, path: Path) -> None:
    """Draw time over ranks on logarithmic axes, a bar for each interval, into a file of FILE_TYPES.

    Raises
    ------
    InputError
        If there is no line, or the file cannot be written.
    """
    if not lines:
        raise InputError(f"figure {path} would show nothing: expected a forecast; ask for other ranks")
    own = looks(line.algorithm for line in lines)
    counts = [count for line in lines for count in line.ranks]
    values: list[float | None] = []
    with drawing(path, 6.6, 4.4, title) as figure:
        ax = figure.subplots()
        for place, line in enumerate(lines):
            look = own[line.algorithm]
            lows, highs = line.low_s or [None] * len(line.ranks), line.high_s or [None] * len(line.ranks)
            values += [*line.time_s, *lows, *highs]
            # Beside each other, so that no interval hides another.
            ranks = [count * 1.03 ** (place - (len(lines) - 1) / 2) for count in line.ranks]
            bars = error_bars(line.time_s, lows, highs)
            ax.errorbar(
                ranks,
                line.time_s,
                yerr=bars,
                color=look.colour,
                marker=look.mark,
                capsize=3,
                elinewidth=0.9,
                label=line.algorithm,
            )
        scale_axis(ax.yaxis, values, "s")
        draw_counts(ax.xaxis, counts)
        ax.set_xlabel("ranks")
        ax.set_ylabel("forecast of one product")
        ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=4)
