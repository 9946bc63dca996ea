"""Matrices with rows of varied length, mirrored at the diagonal."""

from __future__ import annotations

from typing import Any

from scipy.sparse import csr_array

from sparsecast.matrices.families import FAMILIES, Family
from sparsecast.matrices.families.varied import varied_entries
from sparsecast.matrices.synthesis import mirrored, varied_matrix


def _symmetric(rows: int, mean_length: int, lengths: str, reach: float) -> csr_array[Any]:
    return mirrored(varied_matrix(rows, mean_length, lengths, reach, seed=0))


FAMILIES.register("symmetric")(Family(_symmetric, varied_entries, for_some_formats=True))
