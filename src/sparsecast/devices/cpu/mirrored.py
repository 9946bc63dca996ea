"""Products with one triangle of a matrix: mirrored values, and the rows of other parts.

A part of the rows adds mirrored products to rows of its own, directly, and to rows before its first, which
belong to other parts. Those it collects in a buffer of its own, from the first row it reaches on, and in a
second step every part adds what the later ones collected for it, in their order: no atomics, and the same
bits in every run with as many parts. The buffers are short where the matrix is banded.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from sparsecast.features.symmetry import KINDS
from sparsecast.formats.mirrored import MirroredFormat
from sparsecast.system.jit import inner

HERMITIAN, SKEW = (1 + KINDS.index(kind) for kind in ("hermitian", "skew"))


def kind_of(matrix: MirroredFormat) -> tuple[int, ...]:
    """Return a tuple that tells a kernel the kind of a matrix by its length, which the compiler knows."""
    return (0,) * (1 + KINDS.index(matrix.kind))


@inner
def mirrored(value, kind):  # type: ignore[no-untyped-def]
    """Return the mirror image of a value below the diagonal, for a matrix of this `kind_of`."""
    if len(kind) == HERMITIAN:
        return np.conj(value)
    return -value if len(kind) == SKEW else value


class Buffers(NamedTuple):
    """Where each part of the rows collects what it has for rows of others: scratch memory of one product."""

    lowest: NDArray[np.uint64]  # the first row that a part reaches, or its own first one: shape (parts,)
    #: Place of a row in the scratch memory, less its number, modulo 2**64: shape (parts,).
    shifts: NDArray[np.uint64]
    length: int

    @classmethod
    def of(cls, starts: NDArray[Any], columns: NDArray[Any], parts: NDArray[Any], rows: NDArray[Any]) -> Self:
        """Return the buffers for `parts` of units, rows or rows of blocks, each of which begins in `rows`.

        The columns of a unit ascend from its place in `starts` on.
        """
        lowest = rows[:-1].astype(np.uint64)
        for part, (first, last) in enumerate(pairwise(parts)):
            heads = starts[int(first) : int(last) + 1]
            least = columns[heads[:-1][np.diff(heads) > 0]]
            lowest[part] = min(int(lowest[part]), int(least.min(initial=int(lowest[part]))))
        lengths = rows[:-1].astype(np.uint64) - lowest
        return cls(lowest, np.cumsum(lengths) - lengths - lowest, int(lengths.sum()))

    def memory(self, matrix: MirroredFormat) -> NDArray[Any]:
        return np.empty(self.length, dtype=matrix.dtype)


@inner
def collect(part, lowest, shifts, scratch, y, parts):  # type: ignore[no-untyped-def]
    """Add to the rows of a part what the parts after it have for them."""
    for later in range(part + 1, len(parts) - 1):
        start, end = max(lowest[later], parts[part]), min(parts[later], parts[part + 1])
        for j in range(start, end):
            y[j] += scratch[j + shifts[later]]
