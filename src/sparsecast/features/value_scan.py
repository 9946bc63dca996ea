"""Passes over the values of a matrix in chunks; those that ask for all end with the first that denies it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.system.parallel import equal_parts, on_threads

#: Values of a chunk, which the second cache holds.
_CHUNK = 2**16


def words(data: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Return the values as unsigned integers: in two arrays for complex ones."""
    width = min(data.itemsize // (2 if data.dtype.kind == "c" else 1), 8)
    flat = np.ascontiguousarray(data).view(np.dtype(f"u{width}"))
    count = data.itemsize // width
    return tuple(flat[word::count] for word in range(count))


def count_zeros(data: NDArray[Any]) -> int:
    return sum(int(np.count_nonzero(chunk == 0)) for chunk in _chunks(data))


def are_alike(data: NDArray[Any], workers: int) -> bool:
    """Tell whether all values have the same bits, and there is one."""
    bits = words(data)

    def alike(first: int, last: int) -> bool:
        return all((chunk == word[0]).all() for word in bits for chunk in _chunks(word[first:last]))

    return len(data) > 0 and all(on_threads(alike, equal_parts(len(data), workers)))


def are_float32(data: NDArray[Any], workers: int) -> bool:
    """Tell whether the values, as float64, are values of float32; NaN is none, nor are complex ones."""
    if data.dtype.kind not in "biuf" or data.itemsize > 8:
        return False

    def exact(first: int, last: int) -> bool:
        with np.errstate(over="ignore", invalid="ignore"):
            doubles = (np.asarray(chunk, dtype=np.float64) for chunk in _chunks(data[first:last]))
            return all(np.array_equal(chunk.astype(np.float32), chunk) for chunk in doubles)

    return all(on_threads(exact, equal_parts(len(data), workers)))


def _chunks(data: NDArray[Any]) -> Iterator[NDArray[Any]]:
    return (data[first : first + _CHUNK] for first in range(0, len(data), _CHUNK))
