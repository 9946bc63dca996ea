"""The Operator: y = op @ x, however it is done.

Applications see this protocol and nothing of formats, devices or ranks.
"""

from __future__ import annotations

from collections.abc import Callable
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


class BlockOperator(LinearOperator):
    """A SciPy LinearOperator whose row blocks are computed by one product each.

    Parameters
    ----------
    shape : (int, int)
        Rows and columns of the matrix.
    dtype : dtype
        Type of the values, of x and of y: real or complex.
    blocks : list of (int, int, Product)
        First row, row after the last, and the product of each block; together all rows in order.
    """

    def __init__(
        self, shape: tuple[int, int], dtype: np.dtype[Any], blocks: list[tuple[int, int, Product]]
    ) -> None:
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
            If `x` or `out` has another shape, or `out` another dtype, is read-only or shares memory with `x`,
            or stands beside a complex `x` where the matrix is real.
        """
        x = np.asarray(x)
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
        y = np.empty(rows, dtype=self.dtype) if out is None else self._checked_out(out, contiguous)
        for first, last, product in self.blocks:
            product(contiguous, y[first:last])
        return y if out is not None else y.reshape(rows, *x.shape[1:])

    def _matvec(self, x: NDArray[Any]) -> NDArray[Any]:
        return self.matvec(x)

    def _checked_out(self, out: NDArray[Any], x: NDArray[Any]) -> NDArray[Any]:
        usable = out.flags.c_contiguous and out.flags.writeable
        if out.shape != (self.shape[0],) or out.dtype != self.dtype or not usable:
            raise InputError(
                f"out is {out.dtype} of shape {out.shape}: expected contiguous, writable {self.dtype} of "
                f"shape ({self.shape[0]},); allocate it so, or leave it out"
            )
        if np.shares_memory(x, out):
            raise InputError("out shares memory with x: expected an array of its own; copy one of them")
        return out
