"""Matrices of dense blocks, mirrored at the diagonal."""

from __future__ import annotations

from sparsecast.matrices.families import FAMILIES, Family
from sparsecast.matrices.families.blocks import block_entries
from sparsecast.matrices.synthesis import block_matrix, mirrored

FAMILIES.register("symmetric blocks")(
    Family(lambda **shape: mirrored(block_matrix(**shape)), block_entries, for_some_formats=True)
)
