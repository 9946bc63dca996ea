"""Matrices whose row lengths have a chosen deviation, which Wang et al. (2017) leave open."""

from __future__ import annotations

from typing import Any

from scipy.sparse import csr_array

from sparsecast.matrices.banded_synthesis import banded_matrix
from sparsecast.matrices.families import FAMILIES, Family
from sparsecast.matrices.families.row_lengths import UNIFORM_BANDS


def _spread_lengths(rows: int, mean_length: int, lengths: str, spread: float) -> csr_array[Any]:
    return banded_matrix(rows, mean_length, bands=UNIFORM_BANDS, lengths=lengths, spread=spread, seed=0)


def _entries(rows: int, mean_length: int, lengths: str, spread: float) -> int:
    return rows * mean_length


FAMILIES.register("spread lengths")(Family(_spread_lengths, _entries))
