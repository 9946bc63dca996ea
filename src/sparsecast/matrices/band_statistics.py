"""Mean shares of entries in ten bands by distance from the diagonal, of practical matrices.

Gahvari et al. 2007, section IV and Table II, feed their generator with such shares, averaged over 275
matrices and grouped by density. The shipped shares are derived from another corpus by `python
benchmarks/run.py band-statistics`; the file names its source.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from sparsecast.errors import InputError
from sparsecast.features.structure import Structure

#: Least mean entries per row of each class of density; a class ends where the next begins.
DENSITY_CLASSES = (0.0, 4.0, 8.0, 16.0, 32.0, 64.0)


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

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> BandStatistics:
        read = json.loads(text)
        classes = tuple(
            DensityClass(**{**density_class, "bands": tuple(density_class["bands"])})
            for density_class in read["classes"]
        )
        return cls(read["source"], read["density"], classes)


def derive(structures: Iterable[Structure], source: dict[str, Any]) -> BandStatistics:
    """Return the statistics of a corpus of square matrices with entries, all of equal weight."""
    corpus = list(structures)
    if not corpus:
        raise InputError("0 matrices: expected at least one square matrix with entries; name more files")
    for structure in corpus:
        if structure.rows != structure.cols or structure.nnz == 0:
            raise InputError(
                f"{structure.rows} x {structure.cols} with {structure.nnz} entries: expected square matrices "
                "with entries; leave it out"
            )
    ends = (*DENSITY_CLASSES[1:], np.inf)
    classes = []
    for least, end in zip(DENSITY_CLASSES, ends, strict=True):
        members = [structure for structure in corpus if least <= structure.row_lengths.mean < end]
        if members:
            bands = np.mean([structure.bands.histogram for structure in members], axis=0)
            density = float(np.mean([structure.row_lengths.mean for structure in members]))
            classes.append(DensityClass(least, len(members), density, tuple((bands / bands.sum()).tolist())))
    return BandStatistics(
        source, float(np.mean([structure.row_lengths.mean for structure in corpus])), tuple(classes)
    )


@cache
def band_statistics() -> BandStatistics:
    return BandStatistics.from_json(
        files("sparsecast.matrices").joinpath("band_statistics.json").read_text("utf-8")
    )
