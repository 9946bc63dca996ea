"""A feature group: how many entries the columns have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from sparsecast.features import FEATURES
from sparsecast.features.analysis import MatrixSource
from sparsecast.features.feature_group import FeatureGroup


@FEATURES.register("column_lengths")
@dataclass(frozen=True, slots=True)
class ColumnLengths(FeatureGroup):
    name: ClassVar[str] = "column_lengths"
    version: ClassVar[int] = 1

    used: int
    max: int

    @classmethod
    def compute(cls, source: MatrixSource) -> Self:
        lengths = np.bincount(source.indices, minlength=1)
        return cls(int(np.count_nonzero(lengths)), int(lengths.max()))

    def contradiction(self, rows: int, cols: int, nnz: int) -> str | None:
        return None if self.used <= min(cols, nnz) else f"{self.used:,} columns have entries"
