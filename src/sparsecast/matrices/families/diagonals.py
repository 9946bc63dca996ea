"""Matrices of full diagonals."""

from __future__ import annotations

from functools import partial

from sparsecast.matrices.families import FAMILIES, Family
from sparsecast.matrices.synthesis import diagonal_matrix


def _entries(rows: int, diagonals: int, reach: float) -> int:
    return rows * diagonals


FAMILIES.register("diagonals")(Family(partial(diagonal_matrix, seed=0), _entries, for_some_formats=True))
