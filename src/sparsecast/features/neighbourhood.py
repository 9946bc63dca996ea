"""Neighbourhood: distances between entries, in their row and in the next one.

These are the features of the artificial matrices of Mpakos et al. (2023, section III), as in the tables of
cslab-ntua/SpMV-Research on GitHub. Only models of published results read them, so they are computed on
request.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from sparsecast.features import FEATURES
from sparsecast.features.analysis import MatrixSource
from sparsecast.features.feature_group import FeatureGroup
from sparsecast.system.jit import inner, njit
from sparsecast.system.parallel import balanced_parts, equal_parts, on_threads

#: Fixed number of parts, so that the sums do not depend on the threads.
_PARTS = 64

#: Tallies of a part: rows, bandwidths, their squares, scatters, pairs of neighbours, similarities.
_TALLIES = 6


@FEATURES.register("neighbourhood")
@dataclass(frozen=True, slots=True)
class Neighbourhood(FeatureGroup):
    """Distances between entries."""

    name: ClassVar[str] = "neighbourhood"
    is_usual: ClassVar[bool] = False

    #: row_bandwidth, row_bandwidth_deviation: mean over all rows, and population standard deviation, of last
    #: column minus first; 0 for a row with fewer than two entries.
    row_bandwidth: float
    row_bandwidth_deviation: float
    scatter: float  # mean over all rows of the entries of a row over its bandwidth, 0 for a bandwidth of 0
    #: Mean over the entries of the number of entries in the columns to the left and to the right in the same
    #: row: 0 to 2.
    neighbours: float
    #: Mean over the rows with entries of the share of their entries with an entry of the next such row in the
    #: same column or an adjacent one; 0 for the last row.
    cross_row_similarity: float

    @classmethod
    def compute(cls, source: MatrixSource) -> Self:
        """Return the features of a matrix, from all entries; entries of one column are neighbours, too."""
        rows = source.shape[0]
        bounds = balanced_parts(source.indptr, _PARTS)
        tallies = np.zeros((_PARTS, _TALLIES))

        def tally(first: int, last: int) -> None:
            for part in range(first, last):
                _tally(source.indptr, source.indices, bounds[part], bounds[part + 1], tallies[part])

        on_threads(tally, equal_parts(_PARTS, source.workers))
        filled, bandwidths, squares, scatters, pairs, similarities = tallies.sum(axis=0).tolist()
        mean = bandwidths / max(rows, 1)
        return cls(
            row_bandwidth=mean,
            row_bandwidth_deviation=max(squares / max(rows, 1) - mean**2, 0.0) ** 0.5,
            scatter=scatters / max(rows, 1),
            neighbours=2 * pairs / max(source.nnz, 1),
            cross_row_similarity=similarities / max(filled, 1),
        )

    def contradiction(self, rows: int, cols: int, nnz: int) -> str | None:
        widest = max(cols - 1, 0) * (1 + 1e-9)
        checks = {
            f"the mean bandwidth of the rows is {self.row_bandwidth:g}": 0 <= self.row_bandwidth <= widest,
            f"the bandwidths of the rows deviate by {self.row_bandwidth_deviation:g}": (
                0 <= self.row_bandwidth_deviation <= widest
            ),
            f"the scatter of the rows is {self.scatter:g}": 0 <= self.scatter <= max(nnz, 1),
            f"an entry has {self.neighbours:g} neighbours": 0 <= self.neighbours <= 2,
            f"a share of {self.cross_row_similarity:g} of the entries has one in the next row": (
                0 <= self.cross_row_similarity <= 1
            ),
        }
        return next((text for text, holds in checks.items() if not holds), None)


@njit(cache=True, nogil=True)
def _tally(indptr, indices, first_row, last_row, tallies):
    """Add the tallies of the rows of a part; the next row with entries may be in a later part."""
    rows = len(indptr) - 1
    row = first_row
    while row < last_row and indptr[row] == indptr[row + 1]:
        row += 1
    columns = _ascending(indptr, indices, row) if row < last_row else indices[:0]
    while row < last_row:
        following = row + 1
        while following < rows and indptr[following] == indptr[following + 1]:
            following += 1
        beside = _ascending(indptr, indices, following) if following < rows else indices[:0]
        bandwidth = float(columns[-1] - columns[0])
        tallies[0] += 1
        tallies[1] += bandwidth
        tallies[2] += bandwidth**2
        if bandwidth > 0:
            tallies[3] += len(columns) / bandwidth
        for entry in range(1, len(columns)):
            tallies[4] += columns[entry] - columns[entry - 1] <= 1
        tallies[5] += _similar(columns, beside) / len(columns)
        row, columns = following, beside


@inner
def _ascending(indptr, indices, row):
    columns = indices[indptr[row] : indptr[row + 1]]
    for entry in range(1, len(columns)):
        if columns[entry] < columns[entry - 1]:
            return np.sort(columns)
    return columns


@inner
def _similar(columns, beside):
    """Count the columns that have one of `beside` at a distance of at most 1; both ascend."""
    count, place = 0, 0
    for column in columns:
        while place < len(beside) and beside[place] < column - 1:
            place += 1
        count += place < len(beside) and beside[place] <= column + 1
    return count
