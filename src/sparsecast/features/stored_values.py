"""Stored values: the number of zeros among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from sparsecast.features import FEATURES
from sparsecast.features.analysis import MatrixSource
from sparsecast.features.feature_group import FeatureGroup
from sparsecast.features.value_scan import count_zeros
from sparsecast.system.parallel import equal_parts, on_threads


@FEATURES.register("stored_values")
@dataclass(frozen=True, slots=True)
class StoredValues(FeatureGroup):
    """Features of the values: the number of explicit zeros, stored entries whose value is 0."""

    name: ClassVar[str] = "stored_values"

    explicit_zeros: int

    @classmethod
    def compute(cls, source: MatrixSource) -> Self:
        """Return the features of a matrix; the zeros of a sample are scaled to all entries."""
        if source.all_alike:
            return cls(source.nnz * count_zeros(source.data[:1]))
        if source.ranges:
            zeros = sum(count_zeros(source.data[first:last]) for first, last in source.ranges)
            sampled = sum(last - first for first, last in source.ranges)
            return cls(round(zeros * source.nnz / sampled))
        parts = equal_parts(source.nnz, source.workers)
        return cls(sum(on_threads(lambda first, last: count_zeros(source.data[first:last]), parts)))

    def contradiction(self, rows: int, cols: int, nnz: int) -> str | None:
        return self.first_wrong(explicit_zeros=0 <= self.explicit_zeros <= nnz)
