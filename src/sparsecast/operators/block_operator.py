"""Operators, y = op @ x, and the vector spaces of x and y.

Solvers see these protocols, and no formats, devices or processes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator

from sparsecast.errors import InputError

#: One product: reads x, overwrites out. Shapes and types are already checked.
Product = Callable[[NDArray[Any], NDArray[Any]], None]


class VectorSpace(Protocol):
    """The vectors that an operator takes or returns.

    Its vectors can be added, and multiplied by numbers. If they are divided among processes, `dot` and `norm`
    are those of the whole vectors, the same on every process.
    """

    @property
    def size(self) -> int:
        """Entries of a vector, or of the part on this process."""

    def zeros(self) -> Any:
        """Return a new vector of zeros."""

    def host_zeros(self) -> Any:
        """Return a new vector of zeros for the operator whose entries the host can read."""

    def arrays(self, x: Any) -> Sequence[NDArray[Any]]:
        """Return the NumPy arrays of a vector of `host_zeros` in this process; nothing is copied."""

    def dot(self, x: Any, y: Any) -> Any:
        """Return the inner product of two vectors: the sum of conj(x) y."""

    def norm(self, x: Any) -> float:
        """Return the Euclidean norm of a vector."""

    def total(self, own: float) -> float:
        """Return the sum of `own` over all processes."""


@dataclass(frozen=True, slots=True)
class LocalSpace:
    """NumPy vectors of `size` entries in the memory of this process; zeros are of `dtype`."""

    size: int
    dtype: np.dtype[Any]

    def zeros(self) -> NDArray[Any]:
        return np.zeros(self.size, dtype=self.dtype)

    host_zeros = zeros

    def arrays(self, x: NDArray[Any]) -> Sequence[NDArray[Any]]:
        return (x,)

    def dot(self, x: NDArray[Any], y: NDArray[Any]) -> Any:
        return np.vdot(x, y)

    def norm(self, x: NDArray[Any]) -> float:
        return float(np.linalg.norm(x))

    def total(self, own: float) -> float:
        return own


class Operator(Protocol):
    """The interface of a matrix for iterative solvers; `shape` is that of the whole matrix."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of the whole matrix."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the values."""

    @property
    def domain(self) -> VectorSpace:
        """The space of x."""

    @property
    def range(self) -> VectorSpace:
        """The space of y."""

    def matvec(self, x: Any, out: Any = None) -> Any:
        """Return A x, in `out` where it is given."""


@dataclass(frozen=True, slots=True)
class RowProduct:
    """How the rows `first` to `end` - 1 are computed.

    `multivector` takes several vectors, X and out C-contiguous, of shape (cols, vectors) and (rows, vectors).
    It is None where they are taken one after the other.
    """

    first: int
    end: int
    product: Product
    multivector: Product | None = None


class Transposed(NamedTuple):
    """The RowProducts of the transpose of a matrix, a list; for a symmetric matrix, its own.

    They are `conjugated` if they compute the conjugate transpose instead, like those of a Hermitian matrix.
    """

    blocks: Sequence[Any]
    conjugated: bool = False


class BlockOperator(LinearOperator):
    """A SciPy LinearOperator with one product per row block.

    ``op.T`` and ``op.H`` share the blocks with `op` and need no extra memory. If a matrix equals its
    transpose or its conjugate transpose, they are `op` itself. A subclass takes the same four arguments.

    Parameters
    ----------
    shape : (int, int)
    dtype : dtype
        Type of the values, of x and of y: real or complex.
    blocks : list of RowProduct
        All rows in order.
    transposed : callable, optional
        Returns the Transposed. It is called once, at the first product with the transpose or the adjoint.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        dtype: np.dtype[Any],
        blocks: Sequence[Any],
        transposed: Callable[[], Transposed] | None = None,
    ) -> None:
        super().__init__(dtype, shape)  # type: ignore[call-arg]
        self.blocks = blocks
        self._transposed = _Once(transposed or _refuse_transpose)
        self._is_conjugated = False
        self._views: dict[tuple[bool, bool], Self | None] = {}
        #: Builds another matrix as this one was; None where nothing can.
        self.rebuild: Callable[[Any], tuple[Sequence[Any], Callable[[], Transposed]]] | None = None

    @property
    def domain(self) -> VectorSpace:
        """The space of x."""
        return LocalSpace(self.shape[1], self.dtype)

    @property
    def range(self) -> VectorSpace:
        """The space of y."""
        return LocalSpace(self.shape[0], self.dtype)

    def conjugate(self) -> Self:
        """Return the operator of the conjugate values, itself for real values."""
        return self._view(False, True)

    def update(self, A: Any) -> None:
        """Take another matrix of the same shape, such as one with new values, in the formats of this one.

        ``op.T``, ``op.H`` and their like follow. The matrix is converted again, not planned. No product may
        run meanwhile.

        Parameters
        ----------
        A : sparse matrix

        Raises
        ------
        InputError
            If the formats do not hold `A`: its values are not alike or not exact in float32, where they are
            stored so, or it is not symmetric. Products are as before then.
        """
        if self.rebuild is None:
            raise InputError(
                "an operator that does not know how it was built: expected one of sparsecast.compile for a "
                "processor, without adapt, not its transpose; compile the new matrix"
            )
        blocks, transposed = self.rebuild(A)
        self._transposed.renew(transposed, was_shared_with=self.blocks, is_shared_with=blocks)
        self.blocks[:] = blocks  # type: ignore[index]

    def matvec(  # type: ignore[override]
        self, x: NDArray[Any], out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """Return y = A x.

        Parameters
        ----------
        x : array of shape (cols,) or (cols, 1)
            Converted to the operator's dtype and to contiguous memory if necessary: a real x becomes complex
            for a complex matrix, double precision becomes single for a matrix in single. A complex x with a
            real matrix costs two products, of its real and of its imaginary part.
        out : array of shape (rows,), optional
            Contiguous, writable, of the operator's dtype, without overlap with `x`; overwritten and returned.

        Returns
        -------
        array of shape (rows,) or (rows, 1)
            Of the operator's dtype; complex in its precision for a complex x.
        """
        x = _numbers(x, "x")
        rows, cols = self.shape
        if x.shape not in ((cols,), (cols, 1)):
            raise InputError(f"x has shape {x.shape}: expected ({cols},) or ({cols}, 1); reshape x")
        y = self._product(x.reshape(-1), out, (rows,), self._multiply)
        return y if out is not None else y.reshape(rows, *x.shape[1:])

    def matmat(self, X: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:  # type: ignore[override]
        """Return Y = A X for several vectors at once.

        Formats with a kernel for it read the matrix once for up to eight vectors; the others take the
        vectors one after the other.

        Parameters
        ----------
        X : array of shape (cols, vectors)
            Converted to the operator's dtype and to C-contiguous memory where it is not; a complex X with a
            real matrix costs two products.
        out : array of shape (rows, vectors), optional
            As in `matvec`.

        Returns
        -------
        array of shape (rows, vectors)
        """
        X = _numbers(X, "X")
        rows, cols = self.shape
        if X.ndim != 2 or X.shape[0] != cols:
            raise InputError(f"X has shape {X.shape}: expected ({cols}, vectors); reshape X")
        return self._product(X, out, (rows, X.shape[1]), self._multiply_multivector)

    def rmatvec(  # type: ignore[override]
        self, x: NDArray[Any], out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """Return y = A^H x, as ``op.H.matvec``; without a transpose it raises an InputError."""
        return self._adjoint().matvec(x, out)

    def rmatmat(self, X: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:  # type: ignore[override]
        """Return Y = A^H X for several vectors at once: the same as ``op.H.matmat``."""
        return self._adjoint().matmat(X, out)

    # Methods that SciPy calls on a LinearOperator; its other calls are public.

    def _matvec(self, x: NDArray[Any]) -> NDArray[Any]:
        return self.matvec(x)

    def _adjoint(self) -> Self:
        return self._view(True, True)

    def _transpose(self) -> Self:
        return self._view(True, False)

    def _view(self, transposes: bool, conjugates: bool) -> Self:
        """Return the operator of the transpose, the conjugate or both, built once."""
        conjugates = conjugates and self.dtype.kind == "c"
        key = transposes, conjugates
        if key in self._views:
            return self._views[key] or self
        # A view holds blocks and never the original operator: in a cycle of references, a matrix would stay
        # in memory after its last use.
        shape, blocks, transposed = self.shape, self.blocks, self._transposed
        if transposes:
            there, here = transposed(), blocks
            shape, blocks, conjugates = shape[::-1], there.blocks, conjugates ^ there.conjugated
            transposed = _Once(lambda: Transposed(here, there.conjugated))
        if blocks is self.blocks and not conjugates:
            self._views[key] = None
            return self
        view = type(self)(shape, self.dtype, blocks, transposed)
        view._is_conjugated = self._is_conjugated ^ conjugates
        self._views[key] = view
        return view

    def _product(
        self, x: NDArray[Any], out: NDArray[Any] | None, shape: tuple[int, ...], multiply: Product
    ) -> NDArray[Any]:
        if x.dtype.kind == "c" and self.dtype.kind != "c":
            if out is not None:
                raise InputError(
                    f"out with a complex x: expected a real x for a {self.dtype} matrix; drop out"
                )
            result = np.empty(shape, dtype=np.result_type(self.dtype, np.complex64))
            result.real = self._product(x.real, None, shape, multiply)
            result.imag = self._product(x.imag, None, shape, multiply)
            return result
        contiguous = np.ascontiguousarray(x, dtype=self.dtype)
        y = np.empty(shape, dtype=self.dtype) if out is None else self._checked_out(out, contiguous, shape)
        multiply(contiguous.conj() if self._is_conjugated else contiguous, y)
        return np.conjugate(y, out=y) if self._is_conjugated else y

    def _multiply(self, x: NDArray[Any], out: NDArray[Any]) -> None:
        for block in self.blocks:
            block.product(x, out[block.first : block.end])

    def _multiply_multivector(self, X: NDArray[Any], out: NDArray[Any]) -> None:
        if X.shape[1] == 1:  # SciPy 1.18 takes a column for several vectors
            self._multiply(X.reshape(-1), out.reshape(-1))
            return
        for block in self.blocks if X.shape[1] else ():
            rows = out[block.first : block.end]
            if block.multivector is None:
                one_by_one(block.product, X, rows)
            else:
                block.multivector(X, rows)

    def _checked_out(self, out: NDArray[Any], x: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
        if not isinstance(out, np.ndarray):
            raise InputError(
                f"out is a {type(out).__name__}: expected a NumPy array; allocate it, or leave it out"
            )
        usable = out.flags.c_contiguous and out.flags.writeable
        if out.shape != shape or out.dtype != self.dtype or not usable:
            raise InputError(
                f"out is {out.dtype} of shape {out.shape}: expected contiguous, writable {self.dtype} of "
                f"shape {shape}; allocate it so, or leave it out"
            )
        if np.shares_memory(x, out):
            raise InputError("out shares memory with x: expected an array of its own; copy one of them")
        return out


class _Once:
    """A callable that computes its result at the first call and then drops its function."""

    def __init__(self, make: Callable[[], Transposed]) -> None:
        self._make: Callable[[], Transposed] | None = make
        self._lock = threading.RLock()

    def __call__(self) -> Transposed:
        with self._lock:
            if self._make is not None:
                self._made = self._make()
                self._make = None
        return self._made

    def renew(
        self, make: Callable[[], Transposed], was_shared_with: Sequence[Any], is_shared_with: Sequence[Any]
    ) -> None:
        """Compute another result, in the lists that others hold of the first one; or drop its function.

        A matrix shares its blocks with its transpose where they are alike; this must not end.
        """
        with self._lock:
            if self._make is not None:
                self._make = make
                return
            made, before = make(), self._made
            was_alike, is_alike = before.blocks is was_shared_with, made.blocks is is_shared_with
            if made.conjugated != before.conjugated or (was_alike and not is_alike):
                raise InputError(
                    "a matrix of another symmetry, whose transpose is in use: expected the symmetry of the "
                    "first one; compile the new matrix"
                )
            before.blocks[:] = made.blocks  # type: ignore[index]


def _refuse_transpose() -> Transposed:
    raise InputError(
        "the operator has no transpose: expected one built with `transposed`; build it by sparsecast.compile"
    )


def one_by_one(product: Product, X: NDArray[Any], out: NDArray[Any]) -> None:
    """Multiply several vectors, one after the other."""
    y = np.empty(len(out), dtype=out.dtype)
    for vector, column in enumerate(X.T):
        product(np.ascontiguousarray(column), y)
        out[:, vector] = y


def _numbers(x: Any, name: str) -> NDArray[Any]:
    array = np.asarray(x)
    if array.dtype.kind not in "biufc":
        raise InputError(f"{name} is of type {array.dtype}: expected numbers; convert it")
    return array
