"""Slices: what is stored of rows in the order of the matrix, padded to the longest of each SLICE_ROWS.

Libraries for GPUs pad so. Only models of published results read it, so it is computed on request.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from sparsecast.features import FEATURES
from sparsecast.features.analysis import MatrixSource
from sparsecast.features.feature_group import FeatureGroup

#: Rows of a slice, as in Ginkgo's SELL-P.
SLICE_ROWS = 64


@FEATURES.register("slices")
@dataclass(frozen=True, slots=True)
class Slices(FeatureGroup):
    """The entries that slices store with padding, the last one as if it were whole."""

    name: ClassVar[str] = "slices"
    is_usual: ClassVar[bool] = False

    stored: int

    @classmethod
    def compute(cls, source: MatrixSource) -> Self:
        starts = np.arange(0, source.shape[0], SLICE_ROWS)
        longest = np.maximum.reduceat(np.diff(source.indptr), starts) if len(starts) else starts
        return cls(SLICE_ROWS * int(longest.sum()))

    def contradiction(self, rows: int, cols: int, nnz: int) -> str | None:
        return self.first_wrong(
            stored=nnz <= self.stored <= SLICE_ROWS * nnz and self.stored % SLICE_ROWS == 0
        )

    def summary(self) -> list[tuple[str, str]]:
        return [(f"slices of {SLICE_ROWS} rows", f"{self.stored:,} entries with padding")]
