"""The figures of a matrix: its entries, its rows, its diagonals, and the row blocks of its plan."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.reports.figures import COLOURS, drawing, scale_axis
from sparsecast.reports.pages.spy import Spy, spy
from sparsecast.reports.partition_figures import pieces

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Bars of a distribution, twice as many where each is of one number.
_BARS = 60

#: The lightest shade of a point that has an entry.
_FAINTEST = 0.4

#: A panel is no more often as high as wide than this, nor the other way round.
_LONGEST = 4


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """What is counted in bins: `counts[i]` from `edges[i]` to below `edges[i + 1]`, all of them integers."""

    edges: NDArray[np.int64]
    counts: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class StructurePicture:
    """What the figure of a matrix shows.

    Attributes
    ----------
    spy : Spy
    lengths : Distribution
        Rows by their number of entries.
    offsets : Distribution
        Entries by column minus row: a diagonal each, or some.
    """

    spy: Spy
    lengths: Distribution
    offsets: Distribution


def structure_picture(A: csr_array[Any]) -> StructurePicture:
    """Return what is drawn of a matrix: two passes over its entries, in pieces."""
    lengths = np.diff(A.indptr).astype(np.int64)
    return StructurePicture(spy(A), row_lengths(lengths), _offsets(A))


def row_lengths(lengths: NDArray[np.int64]) -> Distribution:
    """Return rows by their length: a bin each where that is few, otherwise bins that grow with the length."""
    longest, shortest = int(lengths.max(initial=0)), int(lengths.min(initial=0))
    if longest - shortest < 2 * _BARS:
        edges = np.arange(shortest, longest + 2)
    else:
        grown = np.geomspace(1, longest + 1, _BARS).round().astype(np.int64)
        edges = np.unique([0, *grown.tolist()])
    return Distribution(edges, np.histogram(lengths, edges)[0])


def _offsets(A: csr_array[Any]) -> Distribution:
    first, last = 0, 0
    for offsets in _offsets_of_pieces(A):
        first, last = min(first, int(offsets.min())), max(last, int(offsets.max()))
    width = max(1, math.ceil((last - first + 1) / (2 * _BARS)))
    edges = np.arange(first, last + 1 + width, width)
    counts = np.zeros(len(edges) - 1, dtype=np.int64)
    for offsets in _offsets_of_pieces(A):
        counts += np.bincount((offsets - first) // width, minlength=len(counts))
    return Distribution(edges, counts)


def _offsets_of_pieces(A: csr_array[Any]) -> Any:
    for first, last in pairwise(pieces(A.indptr)):
        row = np.repeat(np.arange(first, last), np.diff(A.indptr[first : last + 1]))
        if len(row):
            yield A.indices[A.indptr[first] : A.indptr[last]].astype(np.int64) - row


def draw_structure(shown: StructurePicture, title: str, path: Path) -> None:
    """Draw the entries, and the distributions of row lengths and diagonals, into a file of FILE_TYPES.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    with drawing(path, 9.6, 4.6, title) as figure:
        grid = figure.add_gridspec(2, 2, width_ratios=(1.05, 1))
        draw_spy(figure.add_subplot(grid[:, 0]), shown.spy, [(0, shown.spy.rows, COLOURS[0])])
        lengths, offsets = figure.add_subplot(grid[0, 1]), figure.add_subplot(grid[1, 1])
        _draw_distribution(lengths, shown.lengths)
        lengths.set_title("row lengths")
        lengths.set_xlabel("entries of a row")
        lengths.set_ylabel("rows")
        if (np.diff(shown.lengths.edges) > 1).any():
            lengths.set_xscale("symlog", linthresh=1)
            lengths.set_xlim(0, None)
        _plain_ticks(lengths)
        _draw_distribution(offsets, shown.offsets)
        offsets.set_title("diagonals")
        offsets.set_xlabel("column minus row")
        offsets.set_ylabel("entries")
        _plain_ticks(offsets)


def _draw_distribution(ax: Axes, shown: Distribution) -> None:
    widths = np.diff(shown.edges)
    single = bool((widths == 1).all())
    left = shown.edges[:-1] - (0.5 if single else 0.0)
    filled = shown.counts > 0
    ax.bar(
        left[filled],
        shown.counts[filled],
        widths[filled],
        align="edge",
        color=COLOURS[0],
        edgecolor="white",
        linewidth=0.3,
    )
    scale_axis(ax.yaxis, [1.0, *shown.counts.tolist()])
    if ax.get_yscale() == "log":
        ax.set_ylim(0.6, None)


def _plain_ticks(ax: Axes) -> None:
    from matplotlib.ticker import EngFormatter

    ax.xaxis.set_major_formatter(EngFormatter())


def draw_spy(ax: Axes, shown: Spy, bands: Sequence[tuple[int, int, str]]) -> None:
    """Draw the entries of a matrix, the darker the more; each band is its first row, its end and a colour."""
    from matplotlib.colors import to_rgb
    from matplotlib.ticker import EngFormatter

    colours = np.ones((shown.height, 1, 3))
    for first, end, colour in bands:
        scale = shown.height / max(1, shown.rows)
        colours[int(first * scale) : math.ceil(end * scale)] = to_rgb(colour)
    most = max(1, int(shown.counts.max(initial=0)))
    shade = _FAINTEST + (1 - _FAINTEST) * np.log1p(shown.counts) / np.log1p(most)
    image = np.where(shown.counts[..., None] > 0, 1 - shade[..., None] * (1 - colours), 1.0)
    rows, cols = max(1, shown.rows), max(1, shown.cols)
    is_long = max(rows, cols) > _LONGEST * min(rows, cols)
    extent = (0, cols, rows, 0)
    ax.imshow(image, extent=extent, interpolation="nearest", aspect="auto" if is_long else "equal")
    ax.grid(visible=False)
    ax.spines[["top", "right"]].set_visible(True)
    ax.locator_params(nbins=5, integer=True)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(EngFormatter())
    ax.set_xlabel("column")
    ax.set_ylabel("row")
