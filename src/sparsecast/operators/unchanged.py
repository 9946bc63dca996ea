"""Tells whether a compressed matrix of SciPy is still what it was, without reading all of it at each product.

Who changes an array holds it, or reads it from the matrix before. Only then are all entries compared.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

_ARRAYS = "data", "indices", "indptr"

#: The class of matrices in CSR, CSC and BSR.
COMPRESSED: Any = next(kind for kind in csr_array.__mro__ if kind.__name__ == "_cs_matrix")

#: Of arrays that were read from a matrix, by their addresses: a new object for each time. Some may be dead.
_read: dict[int, object] = {}


def _noted(name: str) -> property:
    """Return an attribute of a matrix that notes when it is read."""

    def read(matrix: Any) -> Any:
        array = matrix.__dict__[name]
        _read[id(array)] = object()
        return array

    def write(matrix: Any, array: Any) -> None:
        matrix.__dict__[name] = array

    return property(read, write)


@contextmanager
def reads_noted() -> Iterator[None]:
    """Note meanwhile who reads the arrays of compressed matrices: an `Unchanged` relies on it."""
    for name in _ARRAYS:
        setattr(COMPRESSED, name, _noted(name))
    # The type of the values is asked for often, and changes nothing.
    COMPRESSED.dtype = property(lambda matrix: matrix.__dict__["data"].dtype, COMPRESSED.dtype.fset)
    try:
        yield
    finally:
        for name in (*_ARRAYS, "dtype"):
            delattr(COMPRESSED, name)


class Unchanged:
    """What a compressed matrix holds now, with copies of its arrays."""

    def __init__(self, matrix: Any) -> None:
        self._shape = matrix.shape
        self._arrays = {name: weakref.ref(matrix.__dict__[name]) for name in _ARRAYS}
        self._copies = {name: matrix.__dict__[name].copy() for name in _ARRAYS}
        #: When each array was last read before it was compared.
        self._compared: dict[str, object] = dict.fromkeys(_ARRAYS, _NEVER)

    def holds(self, matrix: Any) -> bool:
        """Tell whether a matrix, this one or another one, holds the same to the last bit."""
        return matrix.shape == self._shape and all(self._is_same(matrix.__dict__, name) for name in _ARRAYS)

    def _is_same(self, arrays: dict[str, NDArray[Any]], name: str) -> bool:
        """Tell whether an array among those of a matrix is still equal."""
        copy = self._copies[name]
        # In this order: who read it before has let go of it when it is alone, and what is read later differs.
        last_read = _read.get(id(arrays[name]))
        is_alone = self._arrays[name]() is arrays[name] and _is_alone(arrays, name)
        if is_alone and last_read is self._compared[name]:
            return True
        bits, before = arrays[name].reshape(-1).view(np.uint8), copy.reshape(-1).view(np.uint8)
        is_equal = arrays[name].dtype == copy.dtype and np.array_equal(bits, before)
        if is_equal:  # who holds it may still write, and let go
            self._compared[name] = last_read if is_alone else _NEVER
        return is_equal


def _is_alone(arrays: dict[str, NDArray[Any]], name: str) -> bool:
    """Tell whether nothing else refers to an array, or to the memory that it is a part of."""
    # No variable may refer to them either.
    if sys.getrefcount(arrays[name]) > _ALONE:
        return False
    if not isinstance(arrays[name].base, np.ndarray):
        return arrays[name].base is None
    return sys.getrefcount(arrays[name].base) <= _ALONE


#: References to an array that nothing else refers to, with that of the call.
_SAMPLE = {"data": np.empty(1)}
_ALONE = sys.getrefcount(_SAMPLE["data"])

#: In the place of the last read before a comparison that says nothing of later.
_NEVER = object()
