"""Products of a matrix with rows and columns in another order: x is copied there, and y back."""

from __future__ import annotations

import threading
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.devices.binding import Bound, bound
from sparsecast.operators.block_operator import Product
from sparsecast.records import Candidate
from sparsecast.system.integers import unsigned
from sparsecast.system.jit import inner, njit
from sparsecast.system.numba_pool import each_part, share
from sparsecast.system.parallel import equal_parts


@inner
def _part(part, order, source, out, starts):  # type: ignore[no-untyped-def]
    for i in range(starts[part], starts[part + 1]):
        out[i] = source[order[i]]


@njit(nogil=True, cache=True)
def _gather(order, source, out, starts, pool):  # type: ignore[no-untyped-def]
    each_part(_part, (order, source, out, starts), pool)


def in_first_order(there: Bound, order: NDArray[Any], candidate: Candidate) -> Bound:
    """Return the products of A of those of ``A[order][:, order]``, on the host.

    x is copied into the other order, and y back, unless the format says where each stored row belongs.

    `order` is a permutation of shape (rows,); `there` was built as `candidate`, and as many threads copy.
    """
    starts = equal_parts(len(order), candidate.threads).astype(np.uint64)
    copy_x, copy_y = (share(_gather, (unsigned(each),), starts) for each in (order, np.argsort(order)))
    matrix: Any = there.matrix
    rows = getattr(matrix, "permutation", None)
    if stores_y := rows is not None:
        rows = (order[rows] if len(rows) else order).astype(rows.dtype)
        there = bound(replace(matrix, permutation=rows), candidate)
    several = there.multivector
    kept = threading.local()  # to ask for memory of this size takes as long as to copy a vector

    def product(x: NDArray[Any], out: NDArray[Any]) -> None:
        if not hasattr(kept, "x"):
            kept.x, kept.out = np.empty_like(x), np.empty_like(out)
        copy_x(x, kept.x)
        there.product(kept.x, out if stores_y else kept.out)
        if not stores_y:
            copy_y(kept.out, out)

    def multivector(X: NDArray[Any], out: NDArray[Any], several: Product) -> None:
        Y = out if stores_y else np.empty_like(out)
        several(X[order], Y)
        if not stores_y:
            out[order] = Y

    return Bound(there.matrix, product, partial(multivector, several=several) if several else None)
