"""Whole numbers: the widths of indices, and random-looking bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.system.jit import inner, njit

#: The largest index of 32 bits.
INT32_MAX = 2**31 - 1

#: 2**64 divided by the golden ratio, odd: multiples of it spread evenly over 64 bits (Knuth, volume 3, 6.4).
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def index_dtype(*counts: int) -> np.dtype[Any]:
    """Return int32 where all these counts fit it, int64 otherwise."""
    return np.dtype(np.int32 if max(counts) <= INT32_MAX else np.int64)


def falls(starts: NDArray[Any]) -> NDArray[np.intp]:
    """Return the places at which an array of starts falls: those of a matrix or a partition never do.

    Neighbours are compared. Their difference wraps: in 32 bits 1711276040 to -1298175770 is a rise.
    """
    return np.flatnonzero(starts[1:] < starts[:-1])


def unsigned(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array of signed integers viewed as unsigned, any other as it is.

    Signed indices cost a wrap-around test for every load, which made conversions half as fast again.
    """
    return array.view(np.dtype(f"u{array.dtype.itemsize}")) if array.dtype.kind == "i" else array


@inner
def first_from(numbers: NDArray[Any], least: Any, low: np.uint64, high: np.uint64) -> np.uint64:
    """Return the first place from `low` on, before `high`, of a number of at least `least`; numbers ascend.

    Both are signed, or both unsigned. NumPy's searchsorted takes a quarter of a second to compile for a type.
    """
    while low < high:
        middle = (low + high) >> np.uint64(1)
        if numbers[middle] < least:
            low = middle + np.uint64(1)
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def mixed(counter: np.uint64) -> np.uint64:
    """Return 64 random-looking bits for a counter: the output function of SplitMix64 (Steele et al. 2014)."""
    bits = counter
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@njit(cache=True, nogil=True)
def stream_of(seed: np.uint64) -> np.uint64:
    """Return the first counter of a seed."""
    # Twice, so that neighbouring seeds do not give shifted copies of one stream.
    return mixed(mixed(seed + GOLDEN))  # type: ignore[no-any-return]
