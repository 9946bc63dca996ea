"""Passes over the values of a matrix that end with the first chunk that answers the question."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.system.parallel import equal_parts, on_threads

#: Distinct values are counted up to one more than a byte can tell apart.
MOST_DISTINCT = 257

#: Values among which they are counted: all values of a matrix that has few would take longer than a product.
MOST_COUNTED = 2**18

#: Values of a chunk.
_CHUNK = 2**16

#: Values that are sorted at once, among which most matrices have MOST_DISTINCT.
_AT_ONCE = 2**12


def words(data: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Return the values as unsigned integers: in two arrays for complex ones."""
    width = min(data.itemsize // (2 if data.dtype.kind == "c" else 1), 8)
    flat = np.ascontiguousarray(data).view(np.dtype(f"u{width}"))
    count = data.itemsize // width
    return tuple(flat[word::count] for word in range(count))


def are_alike(data: NDArray[Any], workers: int) -> bool:
    """Tell whether all values have the same bits, and there is one."""
    bits = words(data)

    def alike(first: int, last: int) -> bool:
        chunks = _chunks(first, last)
        return all((word[start:stop] == word[0]).all() for start, stop in chunks for word in bits)

    return len(data) > 0 and all(on_threads(alike, equal_parts(len(data), workers)))


def distinct_values(data: NDArray[Any]) -> int:
    """Return how many of the first MOST_COUNTED values differ in their bits, up to MOST_DISTINCT."""
    kind, distinct = ("u" if data.itemsize <= 8 else "V"), set[Any]()
    bits = np.ascontiguousarray(data[:MOST_COUNTED]).view(f"{kind}{data.itemsize}")
    for first in range(0, len(bits), _AT_ONCE):
        distinct.update(np.unique(bits[first : first + _AT_ONCE]).tolist())
        if len(distinct) >= MOST_DISTINCT:
            return MOST_DISTINCT
    return len(distinct)


def are_float32(data: NDArray[Any], workers: int) -> bool:
    """Tell whether the values, as float64, are values of float32; NaN is none, nor are complex ones."""
    if data.dtype.kind not in "biuf" or data.itemsize > 8:
        return False

    def exact(first: int, last: int) -> bool:
        chunks = (np.asarray(data[start:stop], dtype=np.float64) for start, stop in _chunks(first, last))
        with np.errstate(over="ignore", invalid="ignore"):
            return all((chunk.astype(np.float32) == chunk).all() for chunk in chunks)

    return all(on_threads(exact, equal_parts(len(data), workers)))


def _chunks(first: int, last: int) -> list[tuple[int, int]]:
    return [(start, min(start + _CHUNK, last)) for start in range(first, last, _CHUNK)]
