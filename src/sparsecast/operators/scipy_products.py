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
from dataclasses import dataclass, replace
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

#: The last matrix of a kind is kept for a plan once its products took so long; so many are. A matrix is kept,
#: or multiplied by others while the program runs, if it takes at most this share of the free memory.
KEPT_S, _KEPT_SHARE, _MOST_KEPT = 0.05, 0.1, 16

#: Products of a matrix that SciPy does before others may, and the share of the time that asking them takes.
ASKED_FROM, _ASKED_SHARE = 50, 0.1

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
    """Products of a kind; `matrix` is the last one that is kept.

    Attributes
    ----------
    matrices : int
        Those that differ in the memory of their values.
    replaced, replaced_s : int and float
        Products that SciPy did not do, and their seconds.
    planning_s : float
        Seconds to find what replaces SciPy, and to build it.
    ask_at_s : float
        Seconds of products after which something else is asked for.
    is_transposed : bool
        Whether the arrays belong to another matrix, of which this is the transpose.
    has_changed : bool
        Whether values were seen to change.
    """

    kind: Kind
    ask_at_s: float = math.inf
    matrices: int = 0
    products: int = 0
    time_s: float = 0.0
    replaced: int = 0
    replaced_s: float = 0.0
    planning_s: float = 0.0
    is_transposed: bool = False
    has_changed: bool = False
    matrix: Any = None

    @property
    def scipy_s(self) -> float:
        """Mean seconds of a product that SciPy did."""
        return (self.time_s - self.replaced_s) / (self.products - self.replaced)

    @property
    def is_slower(self) -> bool:
        """Whether products take longer since SciPy is replaced."""
        return self.replaced >= ASKED_FROM and self.replaced_s > self.replaced * self.scipy_s


@dataclass(slots=True, eq=False)
class _OneMatrix:
    """A matrix, known by the memory of its values, and what replaces SciPy for it."""

    counted: Counted
    owner: Callable[[], Any]
    array: weakref.ref[NDArray[Any]]
    products: int = 0
    look_at: int = 1
    sample: bytes = b""
    replacement: Multiply | None = None


class ProductCounter:
    """Counts products in any thread.

    `ask` is called when those of a kind have taken `ask_at_s` and are ASKED_FROM: with the Counted, the
    method of SciPy, the matrix and x. It returns what multiplies the matrix from then on, or None. For
    another matrix, or a changed one, it is asked again after four times as long or more.
    """

    def __init__(self, ask: Callable[..., Multiply | None] | None = None, ask_at_s: float = math.inf) -> None:
        self._ask, self._ask_at_s, self._is_asking = ask, ask_at_s, False
        self._kinds: dict[Kind, Counted] = {}
        self._matrices: dict[Any, _OneMatrix] = {}
        self._lock = threading.RLock()  # a matrix may be freed wherever memory is taken

    def counting(self, plain: Multiply) -> Multiply:
        """Return a method that multiplies as one of SciPy does, or as what replaces it, and counts that."""
        matrices, lock, clock = self._matrices, self._lock, perf_counter

        def multiply(matrix: Any, x: NDArray[Any]) -> Any:
            vectors = x.shape[1] if x.ndim > 1 else 1
            # No variable refers to the array meanwhile: who plans tells by that who else does.
            number = id(memory_of(matrix.__dict__["data"]))
            key = number, matrix.__class__, matrix.__dict__["_shape"], vectors, x.dtype.char
            one = matrices.get(key)
            if one is None:
                if matrix.ndim != 2 or self._is_asking:  # else the matrices of a plan would be counted
                    return plain(matrix, x)
                one = self._new(key, matrix, x)
            start, replacement, counted = clock(), one.replacement, one.counted
            y = None if replacement is None else replacement(matrix, x)
            is_replaced = y is not None
            if not is_replaced:
                y = plain(matrix, x)
            taken_s = clock() - start
            with lock:
                one.products += 1
                counted.products += 1
                counted.time_s += taken_s
                if is_replaced:
                    counted.replaced += 1
                    counted.replaced_s += taken_s
                elif replacement is not None:
                    one.replacement = None
            if one.products >= one.look_at:
                self._look(one, matrix)
            if counted.time_s >= counted.ask_at_s and one.replacement is None:
                self._ask_for(one, plain, matrix, x)
            return y

        return multiply

    def counted(self) -> list[Counted]:
        """Return the products of each kind until now, the longest time first."""
        with self._lock:
            for one in list(self._matrices.values()):
                if (matrix := one.owner()) is not None:
                    self._look(one, matrix)
            now = map(replace, self._kinds.values())  # copies: the counting goes on
            return sorted(now, key=lambda counted: -counted.time_s)

    def _look(self, one: _OneMatrix, matrix: Any) -> None:
        """See, after ever more products, what would take too long after each; keep the matrix for a plan."""
        values, counted = matrix.__dict__["data"], one.counted
        sample = values.flat[:: max(1, values.size // _SAMPLED)].tobytes()
        with self._lock:
            counted.has_changed |= one.sample not in (b"", sample)
            one.sample, one.look_at = sample, 2 * one.products
            if one.products == 2:
                # The arrays of a matrix that was made for one product belong to the one that it transposes.
                counted.is_transposed = one.owner() is not matrix
            if counted.is_slower:
                one.replacement, counted.ask_at_s = None, math.inf
            others = sum(each.matrix is not None for each in self._kinds.values() if each is not counted)
            if counted.time_s >= KEPT_S and others < _MOST_KEPT and takes_little(matrix):
                counted.matrix = matrix

    def _ask_for(self, one: _OneMatrix, plain: Multiply, matrix: Any, x: NDArray[Any]) -> None:
        counted = one.counted
        with self._lock:
            asks = counted.products >= ASKED_FROM and self._ask is not None and not self._is_asking
            self._is_asking |= asks
        if asks and self._ask is not None:  # without the lock, as other threads may have a part in the answer
            start = perf_counter()
            try:
                one.replacement = self._ask(counted, plain, matrix, x)
            finally:
                counted.planning_s, self._is_asking = counted.planning_s + perf_counter() - start, False
                counted.ask_at_s = max(4 * counted.time_s, counted.planning_s / _ASKED_SHARE)

    def _new(self, key: tuple[Any, ...], matrix: Any, x: NDArray[Any]) -> _OneMatrix:
        (rows, cols), values = matrix.shape, matrix.__dict__["data"]
        of_matrix = rows, cols, int(matrix.nnz), values.dtype.name
        kind = Kind(_place(), matrix.format, *of_matrix, key[3], x.dtype.name)
        array = weakref.ref(memory_of(values), lambda _: self._matrices.pop(key, None))
        with self._lock:
            counted = self._kinds.setdefault(kind, Counted(kind, self._ask_at_s))
            counted.matrices += 1
            return self._matrices.setdefault(key, _OneMatrix(counted, weakref.ref(matrix), array))


@contextmanager
def counted_by(counter: ProductCounter) -> Iterator[None]:
    """Let `counter` do all products of this process with SciPy's matrices meanwhile, if no other one does."""
    if not _counting.acquire(blocking=False):
        raise InputError("a watch within a watch: expected one at a time; leave the other one first")
    formats = csr_array, bsr_array, coo_array, dia_array  # CSC has the methods of CSR
    owners = [next(kind for kind in each.__mro__ if _METHODS[0] in vars(kind)) for each in formats]
    plain = {(kind, name): vars(kind)[name] for kind in owners for name in _METHODS}
    try:
        for (kind, name), method in plain.items():
            setattr(kind, name, counter.counting(method))
        yield
    finally:
        for (kind, name), method in plain.items():
            setattr(kind, name, method)
        _counting.release()


def takes_little(matrix: Any) -> bool:
    """Tell whether the free memory suffices for copies of a matrix, and leaves most for the program."""
    size: int = sum(array.nbytes for array in vars(matrix).values() if hasattr(array, "nbytes"))
    return size <= _KEPT_SHARE * free_bytes()


def memory_of(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array that has the memory of another one: a transpose may be made of parts of a matrix."""
    memory = array.base
    return memory if isinstance(memory, np.ndarray) else array


def _place() -> str:
    """Return the file and the line of the program that asks for a product, of a library if none does."""
    frame: FrameType | None = sys._getframe(3)
    outside = "unknown"
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        place = f"{path.name}:{frame.f_lineno}"
        if _LIBRARIES.isdisjoint(path.parts) and not path.name.startswith("<"):
            return place
        outside = place if outside == "unknown" and "scipy" not in path.parts else outside
        frame = frame.f_back
    return outside
