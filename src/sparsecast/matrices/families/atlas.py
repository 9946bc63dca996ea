"""Twins of real matrices, made from their Structures."""

from __future__ import annotations

from sparsecast.matrices.atlas import atlas_entries, atlas_matrix
from sparsecast.matrices.families import FAMILIES, Family

FAMILIES.register("atlas")(Family(atlas_matrix, atlas_entries))
