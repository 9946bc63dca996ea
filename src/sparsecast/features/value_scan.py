"""Passes over the values of a matrix that end with the first chunk that answers the question."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.system.integers import GOLDEN
from sparsecast.system.jit import njit
from sparsecast.system.parallel import equal_parts, on_threads

#: Distinct values are counted up to one more than a byte can tell apart.
MOST_DISTINCT = 257

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
        return all(
            _is_constant(word[start:stop], word[0]) for start, stop in _chunks(first, last) for word in bits
        )

    return len(data) > 0 and all(on_threads(alike, equal_parts(len(data), workers)))


def distinct_values(data: NDArray[Any], workers: int) -> list[tuple[int, ...]]:
    """Return the words of each distinct value, in any order; of MOST_DISTINCT values where there are more."""

    def distinct(first: int, last: int) -> set[tuple[int, ...]]:
        count, width = 0, len(words(data[:1]))
        slots, taken = np.zeros((2**_SLOT_BITS, width), dtype=np.uint64), np.zeros(2**_SLOT_BITS, np.uint8)
        for start, stop in _chunks(first, last):
            count += _add_distinct(words(data[start:stop]), slots, taken, MOST_DISTINCT - count)
            if count == MOST_DISTINCT:
                break
        return {tuple(value) for value in slots[taken == 1].tolist()}

    parts = on_threads(distinct, equal_parts(len(data), workers))
    return list(set[tuple[int, ...]]().union(*parts))[:MOST_DISTINCT]


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
def _is_constant(word, value):  # type: ignore[no-untyped-def]
    differing = value ^ value
    for each in word:
        differing |= each ^ value
    return differing == 0


@njit(cache=True, nogil=True)
def _is_float32(values):  # type: ignore[no-untyped-def]
    changed = 0
    for value in values:
        changed += np.float64(np.float32(value)) != value
    return changed == 0


@njit(cache=True, nogil=True)
def _add_distinct(words, slots, taken, most):  # type: ignore[no-untyped-def]
    """Enter values in a table until `most` were new; return how many were."""
    added = 0
    for entry in range(np.uint64(len(words[0]))):
        slot = np.uint64(0)
        for word in words:
            slot = (slot ^ np.uint64(word[entry])) * GOLDEN
        slot >>= _SHIFT
        while taken[slot] and not _holds(slots, slot, words, entry):
            slot = (slot + _ONE) & _LOW_BITS
        if not taken[slot]:
            for place, word in enumerate(words):
                slots[slot, place] = word[entry]
            taken[slot] = 1
            added += 1
            if added == most:
                break
    return added


@njit(cache=True, nogil=True)
def _holds(slots, slot, words, entry):  # type: ignore[no-untyped-def]
    same = True
    for place, word in enumerate(words):
        same &= slots[slot, place] == word[entry]
    return same
