"""Sharing a product among threads.

Every kernel takes `starts`: the first unit of work (row or entry) of each part and the end of the last
one. One part runs in the caller's thread and never starts a pool; several run in Numba's pool.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from sparsecast.errors import InputError
from sparsecast.operators import Product

# One product at a time may use the pool: Numba's fallback threading layer aborts the process on concurrent
# use, and two products sharing the cores would only slow each other down. A second caller does all parts
# itself, in the same order of additions, so the bits of the result are the same.
_pool = threading.Lock()


def unsigned(array: NDArray[Any]) -> NDArray[Any]:
    """Return an integer array viewed as unsigned: signed indices cost a wrap-around test for every load."""
    return array.view(np.dtype(f"u{array.dtype.itemsize}"))


def balanced_parts(cumulative_work: NDArray[Any], parts: int) -> NDArray[np.int64]:
    """Return the first unit of each part, and the end, such that the parts' work is as even as units allow.

    Parameters
    ----------
    cumulative_work : array of shape (units + 1,)
        Work before each unit, and the total; row pointers where the work is the non-zeros.
    parts : int
        Parts wanted; some may be empty.

    Returns
    -------
    int64 array of shape (parts + 1,)
    """
    # Of the array's own type, or it would be copied into another.
    targets = np.linspace(0, float(cumulative_work[-1]), parts + 1)[1:-1].astype(cumulative_work.dtype)
    inner = np.searchsorted(cumulative_work, targets)
    return np.concatenate(([0], inner, [len(cumulative_work) - 1])).astype(np.int64)


def share(
    serial: Callable[..., None],
    parallel: Callable[..., None],
    arrays: tuple[Any, ...],
    starts: NDArray[Any],
    scratch: NDArray[Any] | None = None,
) -> Product:
    """Return the Product of a kernel over these parts.

    Parameters
    ----------
    serial, parallel : compiled functions
        Called as (*arrays, x, out, starts): over the parts in order, and by Numba's pool.
    arrays : tuple
        The format's arrays, and scalars, as the kernel takes them.
    starts : unsigned array of shape (parts + 1,)
        From `balanced_parts`, in the type of the kernel's indices.
    scratch : array, optional
        Memory for what the parts tell each other, which the kernel takes after `arrays`. Only the caller that
        has the pool uses this one; every other caller gets its own.
    """
    threads = len(starts) - 1
    limit = int(numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]
    if threads > limit:
        raise InputError(
            f"threads {threads}: expected at most {limit}, the value of NUMBA_NUM_THREADS; "
            f"raise it or lower threads"
        )

    shared = () if scratch is None else (scratch,)

    def alone(x: NDArray[Any], out: NDArray[Any]) -> None:
        serial(*arrays, *map(np.empty_like, shared), x, out, starts)

    def together(x: NDArray[Any], out: NDArray[Any]) -> None:
        before = numba.get_num_threads()
        if not _pool.acquire(blocking=False):
            alone(x, out)
            return
        try:
            if threads != before:  # to say what is so already takes a third of the launch
                numba.set_num_threads(threads)
            parallel(*arrays, *shared, x, out, starts)
        finally:
            if threads != before:
                numba.set_num_threads(before)
            _pool.release()

    return alone if threads == 1 else together
