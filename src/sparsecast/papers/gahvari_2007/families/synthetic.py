"""The synthetic matrices of Gahvari et al. (2007), section IV, and symmetric ones."""

from __future__ import annotations

from typing import Any

from scipy.sparse import csr_array

from sparsecast.matrices.band_statistics import band_statistics
from sparsecast.matrices.banded_synthesis import banded_matrix
from sparsecast.matrices.families import FAMILIES, Family
from sparsecast.papers.gahvari_2007.search_space import MIDDLE


def _synthetic(rows: int, nnz_per_row: int, kind: str) -> csr_array[Any]:
    block = (1, 1) if kind == "symmetric" else (int(kind[0]), int(kind[2]))
    return banded_matrix(
        rows,
        nnz_per_row,
        block=block,
        bands=band_statistics().bands(MIDDLE),  # section III: one distribution for all
        symmetric=kind == "symmetric",
        seed=rows + nnz_per_row,
    )


FAMILIES.register("synthetic")(Family(_synthetic, lambda rows, nnz_per_row, kind: rows * nnz_per_row))
