"""Products with one triangle of a matrix: mirrored values, and the rows of other parts.

A part of the rows adds mirrored products to rows of its own, directly, and to rows before its first, which
belong to other parts. Those it collects in a buffer of its own, from the first row it reaches on, and in a
second step every part adds what the later ones collected for it, in their order: no atomics, and the same
bits in every run with as many parts. The buffers are short where the matrix is banded.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.features.symmetry import KINDS
from sparsecast.formats.mirrored import MirroredFormat
from sparsecast.formats.symmetric_bcsr import SymmetricBCSR
from sparsecast.formats.symmetric_csr import SymmetricCSR
from sparsecast.system.jit import inner

HERMITIAN, SKEW = (1 + KINDS.index(kind) for kind in ("hermitian", "skew"))


def kind_of(matrix: MirroredFormat) -> tuple[int, ...]:
    """Return a tuple that tells a kernel the kind of a matrix by its length, which the compiler knows."""
    return (0,) * (1 + KINDS.index(matrix.kind))


@inner
def mirrored(value, kind):
    """Return the mirror image of a value below the diagonal, for a matrix of this `kind_of`."""
    if len(kind) == HERMITIAN:
        return np.conj(value)
    return -value if len(kind) == SKEW else value


def buffers(
    matrix: SymmetricCSR | SymmetricBCSR, columns: NDArray[Any], parts: NDArray[Any], rows: NDArray[Any]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[Any]]:
    """Return where each part of the rows collects what it has for rows of others.

    The `parts` are of units, rows or rows of blocks, and each begins in `rows`. The columns of a unit ascend
    from its place in `matrix.starts` on. Of each part, the first row that it reaches is returned, or its own
    first one, then the place of a row in the scratch memory, less its number, modulo 2**64: shapes (parts,).
    The last is the scratch memory of one product.
    """
    lowest = rows[:-1].astype(np.uint64)
    for part, (first, last) in enumerate(pairwise(parts)):
        heads = matrix.starts[int(first) : int(last) + 1]
        least = columns[heads[:-1][np.diff(heads) > 0]]
        lowest[part] = min(int(lowest[part]), int(least.min(initial=int(lowest[part]))))
    lengths = rows[:-1].astype(np.uint64) - lowest
    return lowest, np.cumsum(lengths) - lengths - lowest, np.empty(int(lengths.sum()), dtype=matrix.dtype)


@inner
def collect(part, lowest, shifts, scratch, y, parts):
    """Add to the rows of a part what the parts after it have for them."""
    for later in range(part + 1, len(parts) - 1):
        start, end = max(lowest[later], parts[part]), min(parts[later], parts[part + 1])
        for j in range(start, end):
            y[j] += scratch[j + shifts[later]]
