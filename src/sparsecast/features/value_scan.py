"""Passes over the values of a matrix that end with the first chunk that answers the question."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.system.integers import GOLDEN
from sparsecast.system.jit import inner, njit
from sparsecast.system.parallel import equal_parts, on_threads

#: Distinct values are counted up to one more than a byte can tell apart.
MOST_DISTINCT = 257

#: Values among which they are counted: all values of a matrix that has few would take longer than a product.
MOST_COUNTED = 2**18

#: Values of a chunk.
_CHUNK = 2**16

#: Slots of a table of values, as a power of two: many more than values, so that most are in their own slot.
_SLOT_BITS = 11
_SHIFT, _LOW_BITS = np.uint64(64 - _SLOT_BITS), np.uint64(2**_SLOT_BITS - 1)

_ONE = np.uint64(1)


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
    bits, slots = words(data[:MOST_COUNTED]), 2**_SLOT_BITS
    table, is_taken = np.zeros((slots, len(bits)), dtype=np.uint64), np.zeros(slots, dtype=np.bool_)
    return int(_count_distinct(bits, table, is_taken))


def are_float32(data: NDArray[Any], workers: int) -> bool:
    """Tell whether the values, as float64, are values of float32; NaN is none, nor are complex ones."""
    if data.dtype.kind not in "biuf" or data.itemsize > 8:
        return False

    def exact(first: int, last: int) -> bool:
        chunks = (np.asarray(data[start:stop], dtype=np.float64) for start, stop in _chunks(first, last))
        return all(_is_float32(chunk) for chunk in chunks)

    return all(on_threads(exact, equal_parts(len(data), workers)))


def _chunks(first: int, last: int) -> list[tuple[int, int]]:
    return [(start, min(start + _CHUNK, last)) for start in range(first, last, _CHUNK)]


@njit(cache=True, nogil=True)
def _is_float32(values):
    changed = 0  # counted, not stopped at: compilers make vectors of that
    for value in values:
        changed += np.float64(np.float32(value)) != value
    return changed == 0


@njit(cache=True, nogil=True)
def _count_distinct(words, slots, is_taken):
    count = 0
    for entry in range(np.uint64(len(words[0]))):
        slot = np.uint64(0)
        for word in words:
            slot = (slot ^ np.uint64(word[entry])) * GOLDEN
        slot >>= _SHIFT
        while is_taken[slot] and not _holds(slots, slot, words, entry):
            slot = (slot + _ONE) & _LOW_BITS
        if not is_taken[slot]:
            for place, word in enumerate(words):
                slots[slot, place] = word[entry]
            is_taken[slot] = True
            count += 1
            if count == MOST_DISTINCT:
                break
    return count


@inner
def _holds(slots, slot, words, entry):
    same = True
    for place, word in enumerate(words):
        same &= slots[slot, place] == word[entry]
    return same
