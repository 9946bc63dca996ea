"""Matrices of dense blocks."""

from __future__ import annotations

from sparsecast.matrices.families import FAMILIES, Family
from sparsecast.matrices.synthesis import block_matrix


def block_entries(block_rows: int, blocks_per_row: int, block: int, reach: float) -> int:
    return block_rows * blocks_per_row * block**2


FAMILIES.register("blocks")(Family(block_matrix, block_entries, for_some_formats=True))
