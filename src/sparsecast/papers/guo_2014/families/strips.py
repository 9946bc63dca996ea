"""Matrices of whole strips with rows of one length (Guo et al. 2014, section 3.2)."""

from __future__ import annotations

from functools import partial

from sparsecast.matrices.families import FAMILIES, Family
from sparsecast.matrices.synthesis import strip_matrix


def _entries(rows: int, nnz_per_row: int) -> int:
    return rows * nnz_per_row


FAMILIES.register("strips")(Family(partial(strip_matrix, seed=0), _entries))
