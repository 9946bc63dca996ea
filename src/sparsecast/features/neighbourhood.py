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
        tallies = _tally(source.indptr, source.indices)
        filled, bandwidths, squares, scatters, pairs, similarities = tallies
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
        return self.first_wrong(
            row_bandwidth=0 <= self.row_bandwidth <= widest,
            row_bandwidth_deviation=0 <= self.row_bandwidth_deviation <= widest,
            scatter=0 <= self.scatter <= max(nnz, 1),
            neighbours=0 <= self.neighbours <= 2,
            cross_row_similarity=0 <= self.cross_row_similarity <= 1,
        )

    def summary(self) -> list[tuple[str, str]]:
        spread = f"mean {self.row_bandwidth:,.1f}, deviation {self.row_bandwidth_deviation:,.1f}"
        return [
            ("row bandwidth", spread),
            ("neighbours per entry", f"{self.neighbours:.2f} in its row"),
            ("near one of the next row", f"{100 * self.cross_row_similarity:.0f} % of a row's entries"),
        ]


@njit(cache=True, nogil=True)
def _tally(indptr, indices):
    """Return sums over rows with entries, in the order of the last line."""
    rows, row = len(indptr) - 1, 0
    filled, bandwidths, squares, scatters, pairs, similarities = 0, 0.0, 0.0, 0.0, 0, 0.0
    while row < rows and indptr[row] == indptr[row + 1]:
        row += 1
    columns = _ascending(indptr, indices, row) if row < rows else indices[:0]
    while row < rows:
        following = row + 1
        while following < rows and indptr[following] == indptr[following + 1]:
            following += 1
        beside = _ascending(indptr, indices, following) if following < rows else indices[:0]
        bandwidth = float(columns[-1] - columns[0])
        filled += 1
        bandwidths += bandwidth
        squares += bandwidth**2
        if bandwidth > 0:
            scatters += len(columns) / bandwidth
        for entry in range(1, len(columns)):
            pairs += columns[entry] - columns[entry - 1] <= 1
        similarities += _similar(columns, beside) / len(columns)
        row, columns = following, beside
    return filled, bandwidths, squares, scatters, pairs, similarities


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
