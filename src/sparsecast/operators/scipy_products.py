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
from collections.abc import Callable, Iterable, Iterator
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

#: A method of SciPy: takes the matrix, and x or several vectors, and returns a new y.
Multiply = Callable[[Any, NDArray[Any]], NDArray[Any]]

#: What multiplies instead: None where the matrix is no longer the one that it was made for.
Replacement = Callable[[Any, NDArray[Any]], NDArray[Any] | None]

_METHODS = "_matmul_vector", "_matmul_multivector"

#: A matrix is kept for a plan once its products have taken so long, if it takes no more than this share of
#: the free memory; at most so many are.
KEPT_S, _KEPT_SHARE, _MOST_KEPT = 0.05, 0.25, 30

#: Values that are compared to see whether a matrix has changed.
_SAMPLED = 64

#: Parts of the paths of files that are not the program's own.
_LIBRARIES = {"site-packages", "dist-packages", Path(sysconfig.get_path("stdlib")).name}

_watching = threading.Lock()


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
    """Products of one matrix with vectors of one number and type, or of several matrices of one kind.

    Attributes
    ----------
    kind : Kind
    owner : weakref
        Of the matrix that was multiplied first.
    matrices, products : int
    time_s : float
        Seconds of all products.
    replaced, replaced_s : int and float
        Products that SciPy did not do, and their seconds.
    is_transposed : bool
        Whether the arrays belong to another matrix, of which this is the transpose.
    has_changed : bool
        Whether values were seen to change.
    """

    kind: Kind
    owner: weakref.ref[Any]
    matrices: int = 1
    products: int = 0
    time_s: float = 0.0
    replaced: int = 0
    replaced_s: float = 0.0
    is_transposed: bool = False
    has_changed: bool = False
    replacement: Replacement | None = None
    look_at: int = 1
    look_at_s: float = math.inf
    sample: bytes = b""

    def with_added(self, other: Counted) -> Counted:
        """Return these products and those of another matrix of this kind."""
        sums = "matrices", "products", "time_s", "replaced", "replaced_s"
        seen = "is_transposed", "has_changed"
        added = {name: getattr(self, name) + getattr(other, name) for name in sums}
        return replace(self, **added, **{name: getattr(self, name) or getattr(other, name) for name in seen})


class ProductCounter:
    """Counts products by matrix, in any thread. A matrix is known by the memory of its values.

    `replacement` is called when the products of a matrix have taken `first_s`, then after four times as long
    each: it takes the Counted, the method of SciPy, the matrix and x, and returns what multiplies from then
    on, or None.
    """

    def __init__(
        self, replacement: Callable[..., Replacement | None] | None = None, first_s: float = math.inf
    ):
        self._replacement, self._first_s = replacement, first_s
        self._arrays: dict[int, weakref.ref[Any]] = {}
        self._counted: dict[int, dict[tuple[str, int, str], Counted]] = {}
        self._gone: dict[Kind, Counted] = {}
        self._kept: dict[Kind, Any] = {}
        self._lock = threading.RLock()  # a matrix may be freed, and noted, wherever memory is taken
        self._is_busy = False

    def multiply(self, plain: Multiply, matrix: Any, x: NDArray[Any]) -> NDArray[Any]:
        """Multiply as SciPy does, or as what replaces it, and count that."""
        key = matrix.format, x.shape[1] if x.ndim > 1 else 1, x.dtype.char
        # No variable refers to the array meanwhile: who plans tells by that who else does.
        counted = self._counted.get(id(memory_of(matrix.__dict__["data"])), {}).get(key)
        if counted is None:
            if matrix.ndim != 2 or self._is_busy:  # else matrices of the plan itself would be counted
                return plain(matrix, x)
            counted = self._new(matrix, x, key)
        replacement, start = counted.replacement, perf_counter()
        done = None if replacement is None else replacement(matrix, x)
        y = plain(matrix, x) if done is None else done
        taken_s = perf_counter() - start
        with self._lock:
            counted.products += 1
            counted.time_s += taken_s
            if done is not None:
                counted.replaced += 1
                counted.replaced_s += taken_s
            elif replacement is not None:
                counted.has_changed, counted.replacement = True, None
            if counted.products >= counted.look_at:
                self._look(counted, matrix)
            is_due = counted.time_s >= counted.look_at_s and done is None and not self._is_busy
            self._is_busy |= is_due
        if is_due:
            self._replace(counted, plain, matrix, x)
        return y

    def found(self) -> list[tuple[Counted, Any]]:
        """Return the products of each kind, the longest time first, and a matrix of it where one is left."""
        with self._lock:
            left, merged = dict[Kind, Any](), dict(self._gone)
            for counted in (each for of_array in self._counted.values() for each in of_array.values()):
                if (owner := counted.owner()) is not None:
                    left[counted.kind] = owner
                    self._compare(counted, owner)
                _add(merged, counted)
        ordered = sorted(merged.values(), key=lambda counted: -counted.time_s)
        return [(counted, (left | self._kept).get(counted.kind)) for counted in ordered]

    def _new(self, matrix: Any, x: NDArray[Any], key: tuple[str, int, str]) -> Counted:
        rows, cols = matrix.shape
        of_vectors = key[1], x.dtype.name
        values = memory_of(matrix.__dict__["data"])
        dtype = matrix.__dict__["data"].dtype.name
        kind = Kind(_place(), key[0], rows, cols, int(matrix.nnz), dtype, *of_vectors)
        counted, number = Counted(kind, weakref.ref(matrix), look_at_s=self._first_s), id(values)
        with self._lock:
            if number not in self._counted:
                self._arrays[number] = weakref.ref(values, lambda _: self._forget(number))
            return self._counted.setdefault(number, {}).setdefault(key, counted)

    def _forget(self, number: int) -> None:
        with self._lock:
            self._arrays.pop(number)
            for counted in self._counted.pop(number).values():
                _add(self._gone, counted)

    def _look(self, counted: Counted, matrix: Any) -> None:
        """See, after ever more products, what would take too long after each."""
        self._compare(counted, matrix)
        if counted.products == 2:
            # The arrays of a matrix that was made for one product belong to the one that it transposes.
            counted.is_transposed = counted.owner() is not matrix
        if counted.products > 1 and counted.time_s >= KEPT_S and not counted.replaced:
            size = sum(array.nbytes for array in vars(matrix).values() if hasattr(array, "nbytes"))
            is_new = counted.kind not in self._kept
            if not is_new or (len(self._kept) < _MOST_KEPT and size < _KEPT_SHARE * free_bytes()):
                self._kept[counted.kind] = matrix
        counted.look_at = 2 * counted.products

    def _compare(self, counted: Counted, matrix: Any) -> None:
        values = matrix.__dict__["data"]
        sample = values.flat[:: max(1, values.size // _SAMPLED)].tobytes()
        counted.has_changed |= counted.sample not in (b"", sample)
        counted.sample = sample

    def _replace(self, counted: Counted, plain: Multiply, matrix: Any, x: NDArray[Any]) -> None:
        """Ask, without the lock, what multiplies from now on: other threads may have a part in the answer."""
        assert self._replacement is not None, "without one, no time is long enough"
        try:
            counted.replacement = self._replacement(counted, plain, matrix, x)
        finally:
            counted.look_at_s, self._is_busy = 4 * counted.time_s, False


@contextmanager
def counted_by(counter: ProductCounter) -> Iterator[None]:
    """Let `counter` do all products of this process with SciPy's matrices meanwhile.

    Raises
    ------
    InputError
        If another one does.
    """
    if not _watching.acquire(blocking=False):
        raise InputError("a watch within a watch: expected one at a time; leave the other one first")
    formats = csr_array, bsr_array, coo_array, dia_array  # CSC has the methods of CSR
    defined = [(kind, name) for kind in _defining(formats) for name in _METHODS]
    plain = [vars(kind)[name] for kind, name in defined]
    try:
        for (kind, name), method in zip(defined, plain, strict=True):
            setattr(kind, name, _counting(counter.multiply, method))
        yield
    finally:
        for (kind, name), method in zip(defined, plain, strict=True):
            setattr(kind, name, method)
        _watching.release()


def _defining(formats: Iterable[type]) -> list[type]:
    """Return the classes that define the methods of formats."""
    return [next(kind for kind in each.__mro__ if _METHODS[0] in vars(kind)) for each in formats]


def _counting(multiply: Callable[..., NDArray[Any]], plain: Multiply) -> Multiply:
    return lambda matrix, x: multiply(plain, matrix, x)


def memory_of(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array that has the memory of another one: a transpose may be made of parts of a matrix."""
    memory = array.base
    return memory if isinstance(memory, np.ndarray) else array


def _add(merged: dict[Kind, Counted], counted: Counted) -> None:
    before = merged.get(counted.kind)
    merged[counted.kind] = counted if before is None else counted.with_added(before)


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
