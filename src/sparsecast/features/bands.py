"""Bands: distances of entries from the diagonal."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

from sparsecast.features import FEATURES
from sparsecast.features.analysis import MatrixSource
from sparsecast.features.feature_group import FeatureGroup
from sparsecast.features.sweep import BANDS

#: A matrix with more diagonals per entry of a row needs more bytes in DIA than in CSR, with any types: values
#: of 4 bytes at least, against those and at most 8 bytes of index.
DIAGONALS_AN_ENTRY = 3.0


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
        is that of its entries, and the number of diagonals is estimated.
        """
        sweep, diagonals = source.sweep, source.sweep.diagonals
        if source.ranges:
            # They grow with a power of the entries, as from the first half of the sample to the whole.
            power = math.log2(diagonals / sweep.diagonals_of_half)
            estimate = int(diagonals * (source.nnz / sweep.entries) ** min(power, 1.0))
            if estimate <= DIAGONALS_AN_ENTRY * source.nnz / source.shape[0]:  # few are believed
                source.unproven.add(cls.name)
            diagonals = min(estimate, source.nnz, sum(source.shape) - 1)
        shares = tuple((sweep.bands / max(sweep.entries, 1)).tolist())
        return cls(sweep.half_bandwidth, shares, diagonals)

    def contradiction(self, rows: int, cols: int, nnz: int) -> str | None:
        shares = self.histogram
        return self.first_wrong(
            half_bandwidth=0 <= self.half_bandwidth < max(rows, cols, 1),
            diagonals=(nnz > 0) <= self.diagonals <= min(nnz, rows + cols),
            histogram=len(shares) == BANDS and min(shares) >= 0 and abs(sum(shares) - (nnz > 0)) <= 1e-6,
        )
