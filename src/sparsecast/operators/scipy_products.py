"""Counts the products that a program does with SciPy's sparse matrices, and may let others do them.

``A @ x``, ``A.dot(x)``, ``x @ A`` and the solvers of SciPy all end in one of two methods of the format that
multiplies. These are replaced for a while.
"""

from __future__ import annotations

import math
import sys
import sysconfig
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import bsr_array, coo_array, csr_array, dia_array

from sparsecast.errors import InputError
from sparsecast.system.memory import free_bytes

#: Multiplies a matrix by x, or by several vectors. What replaces SciPy returns None where it cannot.
Multiply = Callable[[Any, NDArray[Any]], Any]

_METHODS = "_matmul_vector", "_matmul_multivector"

#: A matrix is kept for a plan once its products took so long, if it takes no more of the free memory.
KEPT_S, _KEPT_SHARE = 0.05, 0.1

#: Values that are compared to see whether a matrix has changed.
_SAMPLED = 64

#: Parts of the paths of files that are not the program's own.
_LIBRARIES = {"site-packages", "dist-packages", Path(sysconfig.get_path("stdlib")).name}

_counting = threading.Lock()


class Kind(NamedTuple):
    """What products have in common that are added up: the line that asks first, the matrix, the vectors."""

    place: str
    format: str
    rows: int
    cols: int
    nnz: int
    dtype: str
    vectors: int
    vector_dtype: str


@dataclass(slots=True, eq=False)
class Counted:
    """Products of a kind, those that SciPy did not do in `replaced`; `matrix` is the last one, if it is kept.

    Attributes
    ----------
    is_transposed : bool
        Whether the arrays belong to another matrix, of which this is the transpose.
    has_changed : bool
        Whether values were seen to change.
    """

    kind: Kind
    matrices: int = 0
    products: int = 0
    time_s: float = 0.0
    replaced: int = 0
    replaced_s: float = 0.0
    is_transposed: bool = False
    has_changed: bool = False
    matrix: Any = None


@dataclass(slots=True, eq=False)
class OneMatrix:
    """Products of one matrix, known by the memory of its values, and what replaces SciPy for them."""

    counted: Counted
    memory: weakref.ref[Any]
    owner: weakref.ref[Any]
    ask_at_s: float
    products: int = 0
    time_s: float = 0.0
    look_at: int = 1
    sample: bytes = b""
    replacement: Multiply | None = None

    def look(self, matrix: Any) -> None:
        """See, after ever more products, what would take too long after each."""
        counted, values = self.counted, matrix.__dict__["data"]
        sample = values.flat[:: max(1, values.size // _SAMPLED)].tobytes()
        counted.has_changed |= self.sample not in (b"", sample)
        self.sample, self.look_at = sample, 2 * self.products
        if self.products == 2:
            # The arrays of a matrix that was made for one product belong to the one that it transposes.
            counted.is_transposed = self.owner() is not matrix
        if self.products > 1 and self.time_s >= KEPT_S and self.replacement is None:
            size = sum(array.nbytes for array in vars(matrix).values() if hasattr(array, "nbytes"))
            if counted.matrix is not None or size <= _KEPT_SHARE * free_bytes():
                counted.matrix = matrix


class ProductCounter:
    """Counts products in any thread.

    `ask` is called when those of a matrix have taken `ask_at_s`, and again after four times as long: with the
    OneMatrix, the method of SciPy, the matrix and x. It returns what multiplies from then on, or None.
    """

    def __init__(self, ask: Callable[..., Multiply | None] | None = None, ask_at_s: float = math.inf) -> None:
        self._ask, self._ask_at_s, self._is_asking = ask, ask_at_s, False
        self._kinds: dict[Kind, Counted] = {}
        self._matrices: dict[Any, OneMatrix] = {}
        self._lock = threading.Lock()

    def multiply(self, plain: Multiply, matrix: Any, x: NDArray[Any]) -> Any:
        """Multiply as SciPy does, or as what replaces it, and count that."""
        # No variable refers to the array meanwhile: who plans tells by that who else does.
        vectors = x.shape[1] if x.ndim > 1 else 1
        key = id(memory_of(matrix.__dict__["data"])), matrix.format, matrix.shape, vectors, x.dtype.char
        one = self._matrices.get(key)
        if one is None:
            if matrix.ndim != 2 or self._is_asking:  # else the matrices of a plan would be counted
                return plain(matrix, x)
            one = self._new(key, matrix, x)
        replacement, start = one.replacement, perf_counter()
        done = None if replacement is None else replacement(matrix, x)
        y = plain(matrix, x) if done is None else done
        taken_s, counted = perf_counter() - start, one.counted
        with self._lock:
            one.products += 1
            one.time_s += taken_s
            counted.products += 1
            counted.time_s += taken_s
            if done is not None:
                counted.replaced += 1
                counted.replaced_s += taken_s
            elif replacement is not None:
                counted.has_changed, one.replacement = True, None
            if one.products >= one.look_at:
                one.look(matrix)
            asks = one.time_s >= one.ask_at_s and one.replacement is None and not self._is_asking
            self._is_asking |= asks
        if asks and self._ask is not None:  # without the lock, as other threads may have a part in the answer
            try:
                one.replacement = self._ask(one, plain, matrix, x)
            finally:
                one.ask_at_s, self._is_asking = 4 * one.time_s, False
        return y

    def counted(self) -> list[Counted]:
        """Return the products of each kind, the longest time first."""
        for one in list(self._matrices.values()):
            if (owner := one.owner()) is not None:
                one.look(owner)
                one.counted.matrix = owner if one.counted.matrix is None else one.counted.matrix
        return sorted(self._kinds.values(), key=lambda counted: -counted.time_s)

    def _new(self, key: tuple[Any, ...], matrix: Any, x: NDArray[Any]) -> OneMatrix:
        (rows, cols), vectors, values = matrix.shape, key[3], matrix.__dict__["data"]
        of_matrix = rows, cols, int(matrix.nnz), values.dtype.name
        kind = Kind(_place(), matrix.format, *of_matrix, vectors, x.dtype.name)
        memory = weakref.ref(memory_of(values), lambda _: self._matrices.pop(key, None))
        with self._lock:
            counted = self._kinds.setdefault(kind, Counted(kind))
            counted.matrices += 1
            one = OneMatrix(counted, memory, weakref.ref(matrix), self._ask_at_s)
            return self._matrices.setdefault(key, one)


@contextmanager
def counted_by(counter: ProductCounter) -> Iterator[None]:
    """Let `counter` do all products of this process with SciPy's matrices meanwhile.

    Raises
    ------
    InputError
        If another one does.
    """
    if not _counting.acquire(blocking=False):
        raise InputError("a watch within a watch: expected one at a time; leave the other one first")
    formats = csr_array, bsr_array, coo_array, dia_array  # CSC has the methods of CSR
    owners = [next(kind for kind in each.__mro__ if _METHODS[0] in vars(kind)) for each in formats]
    plain = {(kind, name): vars(kind)[name] for kind in owners for name in _METHODS}
    try:
        for (kind, name), method in plain.items():
            setattr(kind, name, _counting_method(counter.multiply, method))
        yield
    finally:
        for (kind, name), method in plain.items():
            setattr(kind, name, method)
        _counting.release()


def _counting_method(multiply: Callable[..., Any], plain: Multiply) -> Multiply:
    return lambda matrix, x: multiply(plain, matrix, x)


def memory_of(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array that has the memory of another one: a transpose may be made of parts of a matrix."""
    memory = array.base
    return memory if isinstance(memory, np.ndarray) else array


def _place() -> str:
    """Return the file and the line of the program that asks for a product, of a library if none does."""
    frame: FrameType | None = sys._getframe(4)
    places = []
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        is_library = not _LIBRARIES.isdisjoint(path.parts) or path.name.startswith("<")
        places.append((is_library, "scipy" in path.parts, f"{path.name}:{frame.f_lineno}"))
        frame = frame.f_back
    return min(places, key=lambda place: place[:2])[2]
