"""Bands: how far entries lie from the diagonal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from sparsecast.features import FEATURES
from sparsecast.features.feature_group import FeatureGroup
from sparsecast.features.levels import BANDS
from sparsecast.features.source import MatrixSource


@FEATURES.register("bands")
@dataclass(frozen=True, slots=True)
class Bands(FeatureGroup):
    """Distances from the diagonal.

    `half_bandwidth` is the largest abs(row - column) of an entry, 0 without entries. `histogram` holds the
    shares of the entries in ten bands: distance from the diagonal, that of the rectangle, between 10 (k - 1)
    and 10 k percent of the dimension (Gahvari et al. 2007, section III). `diagonals` counts the distinct
    column - row values that hold an entry.
    """

    name: ClassVar[str] = "bands"

    half_bandwidth: int
    histogram: tuple[float, ...]
    diagonals: int

    @classmethod
    def compute(cls, source: MatrixSource) -> Self:
        """Return the features of a matrix.

        A band of a rectangular matrix is found in double precision, which can put an entry that lies on the
        edge of two bands into the wrong one when rows * cols / gcd(rows, cols) exceeds 1e14.
        """
        found = source.sweep
        shares = tuple((found.bands / max(source.nnz, 1)).tolist())
        return cls(found.half_bandwidth, shares, found.diagonals)

    def contradiction(self, rows: int, cols: int, nnz: int) -> str | None:
        """Return what is wrong with the distances or their shares."""
        if not 0 <= self.half_bandwidth < max(rows, cols, 1):
            return f"the half-bandwidth is {self.half_bandwidth:,}"
        if not (nnz > 0) <= self.diagonals <= min(nnz, rows + cols):
            return f"{self.diagonals:,} diagonals hold an entry"
        if len(self.histogram) != BANDS:
            return f"there are {len(self.histogram)} bands, not {BANDS}"
        if min(self.histogram) < 0 or abs(sum(self.histogram) - (nnz > 0)) > 1e-6:
            return f"the shares of the bands add up to {sum(self.histogram):g}"
        return None
