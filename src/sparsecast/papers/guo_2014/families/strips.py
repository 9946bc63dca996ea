"""Matrices of whole strips with rows of one length (Guo et al. 2014, section 3.2).

The paper times a format on such matrices of one strip, two strips and so on, and leaves the columns open:
here they lie in a band around the diagonal.
"""

from __future__ import annotations

from typing import Any

from scipy.sparse import csr_array

from sparsecast.matrices.families import FAMILIES, Family
from sparsecast.matrices.synthesis import varied_matrix


def _strips(rows: int, nnz_per_row: int) -> csr_array[Any]:
    return varied_matrix(rows, nnz_per_row, "fixed", 0.0, seed=0)


def _entries(rows: int, nnz_per_row: int) -> int:
    return rows * nnz_per_row


FAMILIES.register("strips")(Family(_strips, _entries))
