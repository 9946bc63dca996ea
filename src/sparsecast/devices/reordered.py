"""Products of a matrix with rows and columns in another order: x is copied there, and y back."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.devices.binding import Bound
from sparsecast.operators.block_operator import Product
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


def in_first_order(bound: Bound, order: NDArray[Any], threads: int) -> Bound:
    """Return the products of A of those of ``A[order][:, order]``, on the host.

    Parameters
    ----------
    bound : Bound
    order : integer array of shape (rows,)
        A permutation.
    threads : int
        That copy x and y.
    """
    starts = equal_parts(len(order), threads).astype(np.uint64)
    there, back = (share(_gather, (unsigned(each),), starts) for each in (order, np.argsort(order)))
    several = bound.multivector
    kept = threading.local()  # to ask for memory of this size takes as long as to copy a vector

    def product(x: NDArray[Any], out: NDArray[Any]) -> None:
        if not hasattr(kept, "x"):
            kept.x, kept.out = np.empty_like(x), np.empty_like(out)
        there(x, kept.x)
        bound.product(kept.x, kept.out)
        back(kept.out, out)

    def multivector(X: NDArray[Any], out: NDArray[Any], several: Product) -> None:
        Y = np.empty_like(out)
        several(X[order], Y)
        out[order] = Y

    return Bound(bound.matrix, product, partial(multivector, several=several) if several else None)
