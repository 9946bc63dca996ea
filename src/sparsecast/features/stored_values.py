"""Stored values: the number of zeros among them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sparsecast.features import FEATURES
from sparsecast.features.analysis import MatrixSource
from sparsecast.features.feature_group import FeatureGroup
from sparsecast.records import DTYPES
from sparsecast.system.jit import njit
from sparsecast.system.parallel import equal_parts, on_threads

_COMPILED_FOR = tuple(np.dtype(name) for name in DTYPES)


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
            return cls(source.nnz * _count_zeros(source.data[:1]))
        if source.ranges:
            zeros = sum(_count_zeros(source.data[first:last]) for first, last in source.ranges)
            sampled = sum(last - first for first, last in source.ranges)
            return cls(round(zeros * source.nnz / sampled))
        parts = equal_parts(source.nnz, source.workers)
        return cls(sum(on_threads(lambda first, last: _count_zeros(source.data[first:last]), parts)))

    def contradiction(self, rows: int, cols: int, nnz: int) -> str | None:
        holds = 0 <= self.explicit_zeros <= nnz
        return None if holds else f"{self.explicit_zeros:,} stored entries are 0"


def _count_zeros(data: NDArray[Any]) -> int:
    if data.dtype in _COMPILED_FOR:
        return int(_count_zeros_compiled(data))
    return int(data.size - np.count_nonzero(data))


@njit(cache=True, nogil=True)
def _count_zeros_compiled(data):
    zeros = 0
    for value in data:
        zeros += value == 0
    return zeros
