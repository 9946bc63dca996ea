"""Matrices whose row lengths follow a distribution, with uniform columns."""

from __future__ import annotations

from typing import Any

from scipy.sparse import csr_array

from sparsecast.matrices.banded_synthesis import banded_matrix
from sparsecast.matrices.families import FAMILIES, Family

#: Shares of ten bands in a matrix whose columns are uniform: distance d has 1 - d of the places.
UNIFORM_BANDS = tuple((1 - k / 10) ** 2 - (0.9 - k / 10) ** 2 for k in range(10))


def _row_lengths(rows: int, mean_length: int, lengths: str, spread: float | None = None) -> csr_array[Any]:
    return banded_matrix(rows, mean_length, bands=UNIFORM_BANDS, lengths=lengths, spread=spread, seed=0)


FAMILIES.register("row lengths")(
    Family(_row_lengths, lambda rows, mean_length, lengths, spread=None: rows * mean_length)
)
