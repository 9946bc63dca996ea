"""Matrices of full diagonals."""

from __future__ import annotations

from functools import partial

from sparsecast.matrices.families import FAMILIES, Family
from sparsecast.matrices.synthesis import diagonal_matrix

FAMILIES.register("diagonals")(
    Family(
        partial(diagonal_matrix, seed=0),
        lambda rows, diagonals, reach: rows * diagonals,
        for_some_formats=True,
    )
)
