"""Matrices with rows of varied length, mirrored at the diagonal."""

from __future__ import annotations

from sparsecast.matrices.families import FAMILIES, Family
from sparsecast.matrices.families.varied import varied_entries
from sparsecast.matrices.synthesis import mirrored, varied_matrix

FAMILIES.register("symmetric")(
    Family(lambda **shape: mirrored(varied_matrix(**shape)), varied_entries, for_some_formats=True)
)
