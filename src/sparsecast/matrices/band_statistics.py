"""Mean shares of entries in ten bands by distance from the diagonal, of practical matrices.

Gahvari et al. 2007, section IV and Table II, feed their generator with such shares, averaged over 275
matrices and grouped by density. The shipped shares are derived from another corpus by `python
benchmarks/run.py band-statistics`; the file names its source.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec


@dataclass(frozen=True, slots=True)
class DensityClass:
    """The square matrices of one class of density, the mean number of entries per row."""

    least_density: float
    matrices: int  # number of matrices
    density: float  # mean over the matrices
    bands: tuple[float, ...]  # mean of their shares of entries in each band, as in a Structure


@dataclass(frozen=True, slots=True)
class BandStatistics:
    """Shares by band for every class of density, and the mean density of the corpus."""

    source: dict[str, Any]  # what they were derived from, when, and by which command
    density: float
    classes: tuple[DensityClass, ...]  # by ascending density; those without a matrix are left out

    def bands(self, nnz_per_row: float) -> tuple[float, ...]:
        """Return the shares of the class of a density, or of the first class if the density is below all."""
        below = [
            density_class for density_class in self.classes if density_class.least_density <= nnz_per_row
        ]
        return (below or self.classes[:1])[-1].bands


@cache
def band_statistics() -> BandStatistics:
    text = files("sparsecast.matrices").joinpath("band_statistics.json").read_bytes()
    return msgspec.json.decode(text, type=BandStatistics)
