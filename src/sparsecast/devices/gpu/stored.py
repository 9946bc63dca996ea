"""Reads the entries of a matrix in full or narrow storage; kernels are compiled for each.

Full storage runs the code that it would run alone: the compiler removes a step of 1 and a base of 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from sparsecast.devices.gpu.launching import device_function, made_once
from sparsecast.features.narrow_storage import GROUP_ROWS

_GROUP_SHIFT = GROUP_ROWS.bit_length() - 1


@dataclass(frozen=True, slots=True)
class Stored:
    """The types that kernels compute with, and how the entries of a matrix are stored."""

    value: Any  # of x, y and sums
    index: Any  # of columns in full
    offset: Any  # of the numbers of entries
    is_alike: bool  # whether one value is stored, of all entries
    has_bases: bool  # whether columns count from the base of their group of rows

    @classmethod
    def of(cls, matrix: Any, offset: Any) -> Self:
        """Return how a CSR or SELL matrix is stored."""
        has_bases = len(matrix.bases) > 0
        index = (matrix.bases if has_bases else matrix.indices).dtype.type
        return cls(matrix.dtype.type, index, offset, matrix.values == "one", has_bases)


@made_once
def term_of(stored: Stored) -> Any:
    """Return a device function (data, indices, base, x, k): the product of entry k."""
    value, index, step = stored.value, stored.index, int(not stored.is_alike)

    def term(data, indices, base, x, k):  # type: ignore[no-untyped-def]
        return value(data[k * step]) * x[index(base + index(indices[k]))]

    return device_function(term)


@made_once
def base_of(stored: Stored) -> Any:
    """Return a device function (bases, row): the column that the columns of a row count from."""
    index = stored.index

    def base(bases, row):  # type: ignore[no-untyped-def]
        return index(bases[row >> _GROUP_SHIFT])

    def zero(bases, row):  # type: ignore[no-untyped-def]
        return index(0)

    return device_function(base if stored.has_bases else zero)
