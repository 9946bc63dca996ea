"""Bands: distances of entries from the diagonal."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from sparsecast.features import FEATURES
from sparsecast.features.analysis import MatrixSource
from sparsecast.features.feature_group import FeatureGroup
from sparsecast.features.sweep import BANDS, Sweep
from sparsecast.system.integers import unsigned
from sparsecast.system.jit import njit

#: A matrix with more diagonals per entry of a row needs more bytes in DIA than in CSR, with any types: values
#: of 4 bytes at least, against those and at most 8 bytes of index.
DIAGONALS_AN_ENTRY = 3.0

#: Rows that are compared at once.
_GROUP = 16

_ONE = np.uint64(1)


@FEATURES.register("bands")
@dataclass(frozen=True, slots=True)
class Bands(FeatureGroup):
    """Distances from the diagonal.

    `half_bandwidth` is the largest abs(row - column) of an entry, 0 without entries. `histogram` holds the
    shares of the entries in ten bands: band k is at 10 (k - 1) to 10 k percent of the dimension from the
    diagonal of the rectangle (Gahvari et al. 2007, section III). `diagonals` counts the distinct column - row
    values of entries.
    """

    name: ClassVar[str] = "bands"

    half_bandwidth: int
    histogram: tuple[float, ...]
    diagonals: int

    @classmethod
    def compute(cls, source: MatrixSource) -> Self:
        """Return the features of a matrix.

        The bands of a rectangular matrix are computed in double precision: an entry on the edge of two bands
        may be in the wrong one if rows * cols / gcd(rows, cols) exceeds 1e14. The half-bandwidth of a sample
        is that of its entries. If there can be at most DIAGONALS_AN_ENTRY diagonals per entry of a row, those
        of the sample are believed to be all if its second half adds none, and all are counted otherwise. More
        are estimated.
        """
        sweep = source.sweep
        if source.ranges:
            shares = tuple((sweep.bands / sweep.entries).tolist())
            return cls(sweep.half_bandwidth, shares, _diagonals(sweep, source))
        shares = tuple((sweep.bands / max(source.nnz, 1)).tolist())
        return cls(sweep.half_bandwidth, shares, sweep.diagonals)

    def proven(self, source: MatrixSource) -> Self:
        return replace(self, diagonals=_count(source))

    def contradiction(self, rows: int, cols: int, nnz: int) -> str | None:
        if not 0 <= self.half_bandwidth < max(rows, cols, 1):
            return f"the half-bandwidth is {self.half_bandwidth:,}"
        if not (nnz > 0) <= self.diagonals <= min(nnz, rows + cols):
            return f"{self.diagonals:,} diagonals hold an entry"
        if len(self.histogram) != BANDS:
            return f"there are {len(self.histogram)} bands, not {BANDS}"
        if min(self.histogram) < 0 or abs(sum(self.histogram) - (nnz > 0)) > 1e-6:
            return f"the shares of the bands add up to {sum(self.histogram):g}"
        return None


def _diagonals(sweep: Sweep, source: MatrixSource) -> int:
    """Return the diagonals of a sampled matrix: believed or counted if they may be few, else estimated."""
    most = _most(source)
    if sweep.diagonals == sweep.diagonals_of_half <= most:
        source.unproven.add(Bands.name)
        return sweep.diagonals
    if sweep.diagonals <= most and (counted := _count(source)) <= most:
        return counted
    # They grow with a power of the entries, as from the first half of the sample to the whole.
    power = math.log2(sweep.diagonals / sweep.diagonals_of_half)
    estimate = sweep.diagonals * (source.nnz / sweep.entries) ** min(power, 1.0)
    return max(most + 1, min(int(estimate), source.nnz, sum(source.shape) - 1))


def _most(source: MatrixSource) -> int:
    return int(DIAGONALS_AN_ENTRY * source.nnz / source.shape[0])


def _count(source: MatrixSource) -> int:
    """Return the diagonals, or more than the most that may be few."""
    is_known = np.zeros(sum(source.shape), dtype=np.uint8)
    return int(count_diagonals(unsigned(source.indptr), unsigned(source.indices), is_known, _most(source)))


@njit(cache=True, nogil=True)
def count_diagonals(indptr, indices, is_counted, most):  # type: ignore[no-untyped-def]
    """Count the diagonals until they exceed `most`; `is_counted` has an element for each, all 0.

    Most rows of a mesh have the diagonals of the row before, so many rows are compared with these at once.
    """
    rows, count, row = np.uint64(len(indptr) - 1), 0, np.uint64(0)
    while row < rows and count <= most:
        end = min(row + np.uint64(_GROUP), rows)
        first, stop = np.uint64(indptr[row]), np.uint64(indptr[end])
        length = first - np.uint64(indptr[row - min(row, _ONE)])
        differing = np.uint64(row == np.uint64(0))
        for neighbour in range(row, end):
            differing |= np.uint64(indptr[neighbour + _ONE]) - np.uint64(indptr[neighbour]) ^ length
        if differing == np.uint64(0):
            for entry in range(first, stop):
                differing |= np.uint64(indices[entry]) ^ np.uint64(indices[entry - length]) + _ONE
        if differing != np.uint64(0):
            for neighbour in range(row, end):
                shift, counted = rows - _ONE - neighbour, np.uint8(1)
                for entry in range(np.uint64(indptr[neighbour]), np.uint64(indptr[neighbour + _ONE])):
                    counted &= is_counted[np.uint64(indices[entry]) + shift]
                if counted == 0:
                    for entry in range(np.uint64(indptr[neighbour]), np.uint64(indptr[neighbour + _ONE])):
                        count += is_counted[np.uint64(indices[entry]) + shift] == 0
                        is_counted[np.uint64(indices[entry]) + shift] = 1
        row = end
    return count
