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
#: or planned for while the program runs, if it takes at most this share of the free memory.
KEPT_S, _KEPT_SHARE, _MOST_KEPT = 0.05, 0.1, 16

#: Products of a matrix that are done before there is a plan, and the share of the time that more plans take.
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
    """Products of a kind, or of one matrix; `matrix` is the last one, where it is kept.

    Attributes
    ----------
    replaced, replaced_s : int and float
        Products that SciPy did not do, and their seconds.
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

    def add(self, other: Counted) -> None:
        """Take the products of another matrix."""
        for name in ("matrices", "products", "time_s", "replaced", "replaced_s"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.is_transposed |= other.is_transposed
        self.has_changed |= other.has_changed
        self.matrix = self.matrix if other.matrix is None else other.matrix


@dataclass(slots=True, eq=False)
class OneMatrix(Counted):
    """Products of a matrix, known by the memory of its values, and what replaces SciPy for them."""

    array: Any = None
    owner: Any = None
    ask_at_s: float = math.inf
    asked_s: float = 0.0
    look_at: int = 1
    sample: bytes = b""
    replacement: Multiply | None = None

    def look(self, matrix: Any) -> None:
        """See, after ever more products, what would take too long after each."""
        values, in_scipy = matrix.__dict__["data"], self.products - self.replaced
        sample = values.flat[:: max(1, values.size // _SAMPLED)].tobytes()
        self.has_changed |= self.sample not in (b"", sample)
        self.sample, self.look_at = sample, 2 * self.products
        if self.products == 2:
            # The arrays of a matrix that was made for one product belong to the one that it transposes.
            self.is_transposed = self.owner() is not matrix
        is_slower = self.replaced * (self.time_s - self.replaced_s) < in_scipy * self.replaced_s
        if is_slower and self.replaced >= ASKED_FROM:
            self.replacement, self.ask_at_s = None, math.inf  # what was forecast to be faster is not


class ProductCounter:
    """Counts products in any thread.

    `ask` is called when those of a matrix have taken `ask_at_s` and are ASKED_FROM, and again after four
    times as long or more: with the OneMatrix, the method of SciPy, the matrix and x. It returns what
    multiplies from then on, or None.
    """

    def __init__(self, ask: Callable[..., Multiply | None] | None = None, ask_at_s: float = math.inf) -> None:
        self._ask, self._ask_at_s, self._is_asking = ask, ask_at_s, False
        self._gone: dict[Kind, Counted] = {}
        self._matrices: dict[Any, OneMatrix] = {}
        self._kept: dict[Kind, OneMatrix] = {}
        self._lock = threading.RLock()  # a matrix may be freed, and added up, wherever memory is taken

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
            if one.replacement is not None:
                return self._replaced(one, plain, matrix, x)
            start = clock()
            y = plain(matrix, x)
            taken_s = clock() - start
            with lock:
                one.products += 1
                one.time_s += taken_s
            if one.products >= one.look_at or one.time_s >= one.ask_at_s:
                self._look(one, plain, matrix, x)
            return y

        return multiply

    def counted(self) -> list[Counted]:
        """Return the products of each kind until now, the longest time first."""
        with self._lock:
            kinds = {kind: replace(gone) for kind, gone in self._gone.items()}
            for one in list(self._matrices.values()):
                counted = kinds.setdefault(one.kind, Counted(one.kind))
                if (owner := one.owner()) is not None:
                    one.look(owner)
                    counted.matrix = owner
                counted.add(one)
        return sorted(kinds.values(), key=lambda counted: -counted.time_s)

    def _replaced(self, one: OneMatrix, plain: Multiply, matrix: Any, x: NDArray[Any]) -> Any:
        start = perf_counter()
        done = None if one.replacement is None else one.replacement(matrix, x)
        y = plain(matrix, x) if done is None else done
        taken_s = perf_counter() - start
        with self._lock:
            one.products += 1
            one.time_s += taken_s
            if done is None:
                one.has_changed, one.replacement = True, None
            else:
                one.replaced += 1
                one.replaced_s += taken_s
        if one.products >= one.look_at or one.time_s >= one.ask_at_s:
            self._look(one, plain, matrix, x)
        return y

    def _look(self, one: OneMatrix, plain: Multiply, matrix: Any, x: NDArray[Any]) -> None:
        with self._lock:
            if one.products >= one.look_at:
                one.look(matrix)
                self._keep(one, matrix)
            asks = one.time_s >= one.ask_at_s and one.products >= ASKED_FROM and not self._is_asking
            self._is_asking |= asks
        if asks and self._ask is not None:  # without the lock, as other threads may have a part in the answer
            start = perf_counter()
            try:
                one.replacement = self._ask(one, plain, matrix, x)
            finally:
                one.asked_s += perf_counter() - start
                one.ask_at_s, self._is_asking = max(4 * one.time_s, one.asked_s / _ASKED_SHARE), False

    def _keep(self, one: OneMatrix, matrix: Any) -> None:
        if one.products == 1 or one.time_s < KEPT_S or one.matrix is not None:
            return
        before = self._kept.get(one.kind)
        if not takes_little(matrix) or (before is None and len(self._kept) == _MOST_KEPT):
            return
        if before is not None:
            before.matrix = None
        one.matrix, self._kept[one.kind] = matrix, one

    def _new(self, key: tuple[Any, ...], matrix: Any, x: NDArray[Any]) -> OneMatrix:
        (rows, cols), values = matrix.shape, matrix.__dict__["data"]
        of_matrix = rows, cols, int(matrix.nnz), values.dtype.name
        one = OneMatrix(Kind(_place(), matrix.format, *of_matrix, key[3], x.dtype.name), 1)
        one.array = weakref.ref(memory_of(values), lambda _: self._forget(key))
        one.owner, one.ask_at_s = weakref.ref(matrix), self._ask_at_s
        return self._matrices.setdefault(key, one)

    def _forget(self, key: tuple[Any, ...]) -> None:
        """Add up what was counted of a matrix that is freed."""
        with self._lock:
            if (one := self._matrices.pop(key, None)) is not None:
                self._gone.setdefault(one.kind, Counted(one.kind)).add(one)


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
