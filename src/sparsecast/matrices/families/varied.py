"""Rows of varied length, with columns at random within a reach of the diagonal."""

from __future__ import annotations

from sparsecast.matrices.families import FAMILIES, Family
from sparsecast.matrices.synthesis import varied_matrix


def varied_entries(rows: int, mean_length: int, lengths: str, reach: float) -> int:
    return rows * mean_length


FAMILIES.register("varied")(Family(varied_matrix, varied_entries))
