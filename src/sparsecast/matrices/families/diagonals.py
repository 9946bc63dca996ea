"""Matrices of full diagonals."""

from __future__ import annotations

from sparsecast.matrices.families import FAMILIES, Family
from sparsecast.matrices.synthesis import diagonal_matrix

FAMILIES.register("diagonals")(
    Family(diagonal_matrix, lambda rows, diagonals, reach: rows * diagonals, for_some_formats=True)
)
