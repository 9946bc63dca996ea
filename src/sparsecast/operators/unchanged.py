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

#: Addresses of the arrays that were read from a matrix; those of the dead may be among them.
_read: set[int] = set()


class _Read:
    """An attribute of a matrix that notes when it is read."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, matrix: Any, kind: Any = None) -> Any:
        if matrix is None:
            return self
        array = matrix.__dict__[self._name]
        _read.add(id(array))
        return array

    def __set__(self, matrix: Any, array: Any) -> None:
        matrix.__dict__[self._name] = array


@contextmanager
def reads_noted() -> Iterator[None]:
    """Note meanwhile who reads the arrays of compressed matrices: an `Unchanged` relies on it."""
    for name in _ARRAYS:
        setattr(COMPRESSED, name, _Read(name))
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
        held = ((name, matrix.__dict__[name]) for name in _ARRAYS)
        self._held = [(name, weakref.ref(array), array.copy()) for name, array in held]

    def holds(self, matrix: Any) -> bool:
        """Tell whether a matrix, this one or another one, holds the same to the last bit."""
        arrays, is_shape = matrix.__dict__, matrix.shape == self._shape
        return is_shape and all(_is_same(arrays, *held) for held in self._held)


def _is_same(arrays: dict[str, NDArray[Any]], name: str, array: weakref.ref[Any], copy: NDArray[Any]) -> bool:
    number = id(arrays[name])
    if array() is arrays[name] and number not in _read and _is_alone(arrays, name):
        return True
    _read.discard(number)  # before it is compared, as another thread may read it meanwhile
    bits, before = arrays[name].reshape(-1).view(np.uint8), copy.reshape(-1).view(np.uint8)
    return arrays[name].dtype == copy.dtype and np.array_equal(bits, before)


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
