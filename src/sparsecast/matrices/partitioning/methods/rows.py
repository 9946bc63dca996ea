"""Rows in equal numbers, up to one row."""

from __future__ import annotations

from typing import Any

from scipy.sparse import csr_array

from sparsecast.matrices.partitioning.methods import METHODS
from sparsecast.matrices.partitioning.partition import Partition
from sparsecast.system.parallel import equal_parts


@METHODS.register("rows")
def by_rows(A: csr_array[Any], ranks: int, seed: int) -> Partition:
    """Cut the rows, and the columns, into parts of equal size, in order."""
    rows, cols = A.shape
    return Partition("rows", ranks, equal_parts(rows, ranks), equal_parts(cols, ranks))
