"""Matrices of dense blocks, mirrored at the diagonal."""

from __future__ import annotations

from typing import Any

from scipy.sparse import csr_array

from sparsecast.matrices.families import FAMILIES, Family
from sparsecast.matrices.families.blocks import block_entries
from sparsecast.matrices.synthesis import block_matrix, mirrored


def _symmetric(block_rows: int, blocks_per_row: int, block: int, reach: float) -> csr_array[Any]:
    return mirrored(block_matrix(block_rows, blocks_per_row, block, reach, seed=0))


FAMILIES.register("symmetric blocks")(Family(_symmetric, block_entries, for_some_formats=True))
