"""The figure of partitions: where the entries of the renumbered matrix are, and whose they are."""

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

from sparsecast.matrices.partitioning.partition import Partition
from sparsecast.reports.figures import COLOURS, drawing, hide

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Points of an image along its longer side, about as many as a panel has on a screen.
_POINTS = 500

#: Entries that are looked at together, so that a large matrix takes little memory beside itself.
_PIECE = 1 << 21

#: Colours of parts in turn, and of remote entries: darker than all, so that prints in grey tell them.
_PARTS = (COLOURS[0], COLOURS[5], COLOURS[2])
_REMOTE = "#000000"

#: The lightest shade of a point that has an entry.
_FAINTEST = 0.4

#: Panels in one row of the figure.
_COLUMNS = 2

#: A panel is no more often as high as wide than this, nor the other way round.
_LONGEST = 4


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """What one panel shows: the matrix in the order of its partition, as an image.

    Attributes
    ----------
    entries : array
        In each point of the image.
    kinds : array
        In each point, the place in the turn of colours of the rank that most local entries belong to, or
        the number of these colours where most entries are remote. 0 where there are none.
    """

    title: str
    shape: tuple[int, int]
    entries: NDArray[np.int64]
    kinds: NDArray[np.int64]


def pattern(A: csr_array[Any], partition: Partition) -> Pattern:
    """Return what is drawn of a partition, in points that each hold a rectangle of the matrix."""
    rows, cols = A.shape
    size = max(1, min(rows, _POINTS)), max(1, min(cols, _POINTS))
    place_of_row, part_of_row = _places(partition.row_bounds, partition.order)
    place_of_col, part_of_col = _places(partition.column_bounds, partition.order)
    counts = np.zeros(size[0] * size[1] * (len(_PARTS) + 1), dtype=np.int64)
    for first, last in pairwise(pieces(A.indptr)):
        entry_row = np.repeat(np.arange(first, last), np.diff(A.indptr[first : last + 1]))
        entry_col = A.indices[A.indptr[first] : A.indptr[last]]
        row_part, col_part = part_of_row[entry_row], part_of_col[entry_col]
        if partition.is_2d:
            kind = (row_part + col_part) % len(_PARTS)
        else:
            kind = np.where(row_part == col_part, row_part % len(_PARTS), len(_PARTS))
        point = (
            place_of_row[entry_row] * size[0] // rows * size[1] + place_of_col[entry_col] * size[1] // cols
        )
        counts += np.bincount(point * (len(_PARTS) + 1) + kind, minlength=len(counts))
    by_kind = counts.reshape(*size, len(_PARTS) + 1)
    title = f"{partition.method}, {partition.ranks:,} ranks"
    return Pattern(title, (rows, cols), by_kind.sum(axis=2), by_kind.argmax(axis=2))


def _places(
    bounds: NDArray[np.int64], order: NDArray[np.int64] | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the renumbered row, or column, of each of the matrix, and its part."""
    place = np.arange(bounds[-1])
    part = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
    if order is None:
        return place, part
    place[order] = np.arange(bounds[-1])
    return place, part[place]


def pieces(indptr: NDArray[Any]) -> list[int]:
    """Return the first rows of pieces of the matrix, and the end."""
    targets = np.arange(_PIECE, int(indptr[-1]), _PIECE)
    inner = np.unique(np.searchsorted(indptr, targets)).tolist()
    rows = len(indptr) - 1
    return [0, *(row for row in inner if 0 < row < rows), rows]


def draw_patterns(patterns: Sequence[Pattern], title: str, path: Path) -> None:
    """Draw at least one pattern into a file of FILE_TYPES.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    from matplotlib.patches import Patch

    columns = min(len(patterns), _COLUMNS)
    lines = math.ceil(len(patterns) / columns)
    with drawing(path, 4.6 * columns + 0.4, 4.9 * lines + 0.8, title) as figure:
        axes = figure.subplots(lines, columns, squeeze=False).ravel()
        for each, ax in zip(patterns, axes, strict=False):
            _draw(ax, each)
        hide(axes[len(patterns) :])
        named = {
            "entries with their x on the rank, in the colours of the ranks": _PARTS[0],
            "entries that need x of another rank": _REMOTE,
        }
        handles = [Patch(color=colour, label=label) for label, colour in named.items()]
        figure.legend(handles=handles, loc="outside lower center")


def _draw(ax: Axes, shown: Pattern) -> None:
    from matplotlib.colors import to_rgb
    from matplotlib.ticker import EngFormatter

    rows, cols = shown.shape
    colours = np.array([to_rgb(colour) for colour in (*_PARTS, _REMOTE)])[shown.kinds]
    most = max(1, int(shown.entries.max()))
    shade = _FAINTEST + (1 - _FAINTEST) * np.log1p(shown.entries) / np.log1p(most)
    image = np.where(shown.entries[..., None] > 0, 1 - shade[..., None] * (1 - colours), 1.0)
    is_long = max(rows, cols) > _LONGEST * min(rows, cols)
    extent = (0, max(1, cols), max(1, rows), 0)
    ax.imshow(image, extent=extent, interpolation="nearest", aspect="auto" if is_long else "equal")
    ax.grid(visible=False)
    ax.spines[["top", "right"]].set_visible(True)
    ax.set_title(shown.title)
    ax.locator_params(nbins=4)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(EngFormatter())
    ax.set_xlabel("column, renumbered")
    ax.set_ylabel("row, renumbered")
