"""The spy plot of a page: where the entries of a matrix are, and the row blocks of its plan in colour."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.reports.partition_figures import pieces

#: Points along the longer side, and the least along the shorter one.
_POINTS, _LEAST_POINTS = 480, 16

#: Of the entries: told from the colours of a plan. On a dark page the style inverts it.
_COLOUR = (20, 20, 20)

#: The faintest point with an entry.
_FAINTEST = 90


@dataclass(frozen=True, slots=True, eq=False)
class Spy:
    """Entries in the points of a grid of shape (height, width), whatever the size of the matrix."""

    rows: int
    cols: int
    counts: NDArray[np.int64]

    @property
    def height(self) -> int:
        """Points from the first row to the last."""
        return int(self.counts.shape[0])

    @property
    def width(self) -> int:
        """Points from the first column to the last."""
        return int(self.counts.shape[1])

    def image(self) -> str:
        """Return the grid as a PNG in a data URL, transparent where there is no entry."""
        from PIL import Image

        most = max(1, int(self.counts.max(initial=0)))
        shade = _FAINTEST + (255 - _FAINTEST) * np.log1p(self.counts) / np.log1p(most)
        points = np.empty((*self.counts.shape, 4), dtype=np.uint8)
        points[..., :3] = _COLOUR
        points[..., 3] = np.where(self.counts > 0, shade, 0)
        written = io.BytesIO()
        Image.fromarray(points, "RGBA").save(written, "PNG", optimize=True)
        return "data:image/png;base64," + base64.b64encode(written.getvalue()).decode()

    def bands(self, bounds: Sequence[int]) -> list[tuple[float, float]]:
        """Return where row blocks begin, and their heights, in points: of their first rows and the end."""
        scale = self.height / max(1, self.rows)
        return [(first * scale, (last - first) * scale) for first, last in pairwise(bounds)]


def spy(A: csr_array[Any]) -> Spy:
    """Return the spy plot of a matrix: one pass over the entries, in pieces."""
    rows, cols = A.shape
    longer = max(rows, cols, 1)
    height, width = (min(max(n, 1), max(_LEAST_POINTS, round(_POINTS * n / longer))) for n in (rows, cols))
    counts = np.zeros(height * width, dtype=np.int64)
    point_of_row = np.arange(rows) * height // max(rows, 1) * width
    point_of_col = np.arange(cols) * width // max(cols, 1)
    for first, last in pairwise(pieces(A.indptr)):
        begin, end = A.indptr[first], A.indptr[last]
        row = np.repeat(point_of_row[first:last], np.diff(A.indptr[first : last + 1]))
        counts += np.bincount(row + point_of_col[A.indices[begin:end]], minlength=len(counts))
    return Spy(rows, cols, counts.reshape(height, width))
