"""Figures: for each, a function that gathers its data, and one that draws it."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sparsecast.benchmark.gahvari.search_space import NNZ_PER_ROW, UNBLOCKED, Point, Series, problem_bytes
from sparsecast.benchmark.gahvari.summary import Rating, speeds_of
from sparsecast.errors import InputError
from sparsecast.machines.machine import Machine
from sparsecast.records import VALUE_BYTES
from sparsecast.reports.tables import setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Told apart by the colour-blind: Okabe and Ito (2008), and two more where a figure has as many formats.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#B8A800", "#777777", "#7B4FA3")

#: Kinds of files that a figure is written as.
FILE_TYPES = (".png", ".svg", ".pdf")


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
    by_series: dict[Series, dict[Point, float]] = {}
    for point, speed in speeds_of(rating.records).items():
        by_series.setdefault(point.series, {})[point] = speed
    shown = [UNBLOCKED] if UNBLOCKED in by_series else []
    blocked = [series for series in by_series if series != UNBLOCKED and not series.is_symmetric]
    if blocked:
        shown.append(max(blocked, key=lambda series: float(np.median(list(by_series[series].values())))))
    return [_speed_map(series, by_series[series], rating) for series in shown]


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


def refuse_undrawable(path: Path) -> None:
    """Raise if no figure can be drawn to a file of this name: before anything is measured for it.

    Raises
    ------
    InputError
        If matplotlib is missing, or writes no files of that kind.
    """
    if path.suffix not in FILE_TYPES:
        raise InputError(f"figure {path}: expected a name that ends in {', '.join(FILE_TYPES)}; name it so")
    if importlib.util.find_spec("matplotlib") is None:
        raise InputError(
            f"figure {path} needs the Python package matplotlib: expected it to be installed; "
            f"pip install 'sparsecast[report]'"
        )


def draw_speed_maps(maps: Sequence[SpeedMap], title: str, path: Path) -> None:
    """Draw at least one map, all with one scale of colours, side by side into a file of FILE_TYPES.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    from matplotlib import figure as drawing
    from matplotlib.colors import Normalize

    figure = drawing.Figure(figsize=(5.5 * len(maps) + 1, 4.2), layout="constrained")
    axes = figure.subplots(1, len(maps), squeeze=False)[0]
    every = [speed for each in maps for speed in each.mflops]
    scale = Normalize(min(every), max(every))
    for each, ax in zip(maps, axes, strict=True):
        drawn = ax.scatter(each.dimensions, each.nnz_per_row, c=each.mflops, norm=scale, s=60, cmap="viridis")
        ax.set_xscale("log", base=2)
        ax.set_title(each.title)
        ax.set_xlabel("dimension")
        _mark_sizes(ax, each)
    axes[0].set_ylabel("non-zeros a row")
    figure.colorbar(drawn, ax=list(axes), label="MFLOP/s")
    figure.suptitle(title)
    save(figure, path)


def save(figure: Figure, path: Path) -> None:
    """Write a figure; an InputError says that its file cannot be written."""
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise unwritable(f"figure {path}", error) from error


def unwritable(what: str, error: OSError) -> InputError:
    """Return the error for a file that the system does not let be written."""
    return InputError(
        f"{what} cannot be written ({error.strerror or error}): expected a file in a writable folder; "
        f"name another"
    )


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
    return f"{machine.name if machine.gpu else machine.processor}: {setting(rating)}"
