"""The Operator: y = op @ x, however it is done.

Applications see this protocol and nothing of formats, devices or ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator

from sparsecast.errors import InputError

#: Computes one product: reads x, overwrites out. Shapes and types were checked before.
Product = Callable[[NDArray[Any], NDArray[Any]], None]


class Operator(Protocol):
    """What a solver may ask of a matrix."""

    shape: tuple[int, int]
    dtype: np.dtype[Any]

    def matvec(self, x: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return A x, in `out` where it is given."""
        ...


@dataclass(frozen=True, slots=True)
class RowProduct:
    """How some consecutive rows are computed.

    Attributes
    ----------
    first, end : int
        First row, and the row after the last.
    product : Product
        With one vector.
    multivector : Product or None
        With several vectors, X and out C-contiguous, of shape (cols, vectors) and (rows, vectors); None
        where they are taken one after the other.
    """

    first: int
    end: int
    product: Product
    multivector: Product | None = None


class BlockOperator(LinearOperator):
    """A SciPy LinearOperator whose row blocks are computed by one product each.

    Parameters
    ----------
    shape : (int, int)
        Rows and columns of the matrix.
    dtype : dtype
        Type of the values, of x and of y: real or complex.
    blocks : sequence of RowProduct
        Together all rows in order.
    """

    def __init__(self, shape: tuple[int, int], dtype: np.dtype[Any], blocks: Sequence[RowProduct]) -> None:
        super().__init__(dtype, shape)  # type: ignore[call-arg]
        self.blocks = blocks

    def matvec(  # type: ignore[override]
        self, x: NDArray[Any], out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """Return y = A x.

        Parameters
        ----------
        x : array of shape (cols,) or (cols, 1)
            Converted to the operator's dtype and to contiguous memory where it is not: a real x becomes
            complex for a complex matrix, double precision becomes single for a matrix in it. A complex x
            with a real matrix costs two products, of its real and of its imaginary part.
        out : array of shape (rows,), optional
            Contiguous, writable, of the operator's dtype, sharing no memory with `x`; overwritten and
            returned.

        Returns
        -------
        array of shape (rows,) or (rows, 1)
            Of the operator's dtype; of the complex type of its precision where x is complex.

        Raises
        ------
        InputError
            If `x` holds no numbers, or `x` or `out` has another shape, or `out` another dtype, is no NumPy
            array, is read-only, shares memory with `x` or stands beside a complex `x` where the matrix is
            real.
        """
        x = _numbers(x, "x")
        rows, cols = self.shape
        if x.shape not in ((cols,), (cols, 1)):
            raise InputError(f"x has shape {x.shape}: expected ({cols},); reshape x to the matrix's columns")
        if x.dtype.kind == "c" and self.dtype.kind != "c":
            if out is not None:
                raise InputError(
                    f"out with a complex x: expected a real x for a {self.dtype} matrix; drop out"
                )
            result = np.empty((rows, *x.shape[1:]), dtype=np.result_type(self.dtype, np.complex64))
            result.real, result.imag = self.matvec(x.real), self.matvec(x.imag)
            return result
        contiguous = np.ascontiguousarray(x.reshape(-1), dtype=self.dtype)
        y = np.empty(rows, dtype=self.dtype) if out is None else self._checked_out(out, contiguous, (rows,))
        for block in self.blocks:
            block.product(contiguous, y[block.first : block.end])
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

        Raises
        ------
        InputError
            As `matvec`.
        """
        X = _numbers(X, "X")
        rows, cols = self.shape
        if X.ndim != 2 or X.shape[0] != cols:
            raise InputError(
                f"X has shape {X.shape}: expected ({cols}, vectors); reshape X to the matrix's columns"
            )
        if X.dtype.kind == "c" and self.dtype.kind != "c":
            if out is not None:
                raise InputError(
                    f"out with a complex X: expected a real X for a {self.dtype} matrix; drop out"
                )
            result = np.empty((rows, X.shape[1]), dtype=np.result_type(self.dtype, np.complex64))
            result.real, result.imag = self.matmat(X.real), self.matmat(X.imag)
            return result
        contiguous = np.ascontiguousarray(X, dtype=self.dtype)
        shape = rows, X.shape[1]
        Y = np.empty(shape, dtype=self.dtype) if out is None else self._checked_out(out, contiguous, shape)
        for block in self.blocks if X.shape[1] else ():
            _multiply_multivector(block, contiguous, Y[block.first : block.end])
        return Y

    def _matmat(self, X: NDArray[Any]) -> NDArray[Any]:
        return self.matmat(X)

    def _matvec(self, x: NDArray[Any]) -> NDArray[Any]:
        return self.matvec(x)

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


def _numbers(x: Any, name: str) -> NDArray[Any]:
    array = np.asarray(x)
    if array.dtype.kind not in "biufc":
        raise InputError(f"{name} is of type {array.dtype}: expected numbers; convert it")
    return array


def _multiply_multivector(block: RowProduct, X: NDArray[Any], out: NDArray[Any]) -> None:
    if block.multivector is not None:
        block.multivector(X, out)
        return
    for vector, column in enumerate(X.T):
        y = np.empty(len(out), dtype=out.dtype)
        block.product(np.ascontiguousarray(column), y)
        out[:, vector] = y
