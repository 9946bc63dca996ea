"""2D uniform: P = p x p blocks of equal numbers of rows and columns, in a random order.

One random permutation of rows and columns balances the blocks of matrices with a band (Hossain and Saule,
section II.B, after Boman, Devine and Rajamanickam 2013).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from sparsecast.errors import InputError
from sparsecast.matrices.partitioning.methods import METHODS
from sparsecast.matrices.partitioning.partition import Partition, require_square


@METHODS.register("uniform-2d")
def by_uniform_2d(A: csr_array[Any], ranks: int, seed: int) -> Partition:
    """Permute rows and columns alike, then cut both into p parts of ceil(n / p), the last ones shorter."""
    parts = square_root(ranks)
    require_square(A.shape, "uniform-2d")
    rows = A.shape[0]
    bounds = np.minimum(np.arange(parts + 1) * -(-rows // parts), rows)
    return Partition("uniform-2d", ranks, bounds, bounds, np.random.default_rng(seed).permutation(rows))


def square_root(ranks: int) -> int:
    """Return p of ranks = p x p."""
    root = math.isqrt(ranks)
    if root * root != ranks:
        raise InputError(
            f"ranks {ranks} for partition 'uniform-2d': expected a square, p x p blocks; "
            f"take {root**2} or {(root + 1) ** 2}"
        )
    return root
