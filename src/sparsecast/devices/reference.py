"""The reference result: a plain product in twice the precision of double, compared with every kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.errors import WrongResultError
from sparsecast.system.jit import inner, njit
from sparsecast.system.parallel import balanced_parts, in_parts

#: Roundings allowed for each entry of the longest row, in units of the dtype's machine epsilon. A product and
#: a sum of real numbers round by half of one each. So does a complex sum, and a complex product by at most
#: sqrt(5) halves (Brent, Percival, Zimmermann 2007, Error bounds on complex floating-point multiplication):
#: the allowance holds for both.
_ROUNDINGS_PER_ENTRY = 2.0

#: Largest error that float32 makes of a value: relative to it, and beside that, times an x of measurements.
_ROUNDED, _ROUNDED_AWAY = 2.0**-24, 2.0**-148


#: Times a double, what cuts it into two halves whose products are exact.
_HALVES = 2.0**27 + 1.0


@dataclass(frozen=True)
class ReferenceProduct:
    """y = A x, and the scale of its rounding errors."""

    y: NDArray[Any]  # shape (rows,), float64 or complex128
    #: Shape (rows,): the sum over each row of abs(a x), the modulus of complex terms. NaN where a term is not
    #: finite in itself, and infinite where finite ones have too large a product.
    magnitude: NDArray[np.float64]
    row_lengths: NDArray[Any]  # shape (rows,)
    y_low: NDArray[Any] | float = 0.0  # shape (rows,): what is to be added to y, below its last digit

    @classmethod
    def of(cls, A: csr_array[Any], x: NDArray[Any]) -> ReferenceProduct:
        """Compute the product by Dot2 of Ogita, Rump and Oishi (2005, Accurate sum and dot product)."""
        dtype = np.result_type(A.dtype, x.dtype, np.float64)
        y, low = np.zeros((2, A.shape[0]), dtype=dtype)
        magnitude = np.zeros(A.shape[0])
        wide = (np.ascontiguousarray(each, dtype=dtype) for each in (A.data, x))
        parts = (each.view(np.float64).reshape(-1, dtype.itemsize // 8) for each in (*wide, y, low))
        in_parts(_multiply, (A.indptr, A.indices, *parts, magnitude), balanced_parts(A.indptr))
        return cls(y, magnitude, np.diff(A.indptr), low)

    def errors(self, y: NDArray[Any]) -> NDArray[np.float64]:
        """Return abs(y - reference) / magnitude of each row.

        Where a term is not finite, `y` must not be finite either; else the error is infinite, as for a NaN.
        The error of rows whose terms may overflow the dtype is 0.
        """
        limits = np.finfo(y.dtype)
        # Below the least normal number of the dtype, a rounding no longer shrinks with the value.
        scale = np.where(self.magnitude > 0, np.maximum(self.magnitude, limits.tiny), 1)
        with np.errstate(invalid="ignore", over="ignore"):
            error: NDArray[np.float64] = np.abs((y - self.y) - self.y_low) / scale
        error[(self.magnitude == 0) & (error > 0)] = np.inf
        error[np.isnan(error)] = np.inf
        infinite = np.isnan(self.magnitude)
        error[infinite] = np.where(np.isfinite(y[infinite]), np.inf, 0)
        error[self.magnitude > limits.max] = 0
        return error

    def error(self, y: NDArray[Any]) -> float:
        return float(self.errors(y).max(initial=0.0))

    def check(self, y: NDArray[Any], what: str, is_lossy: bool = False) -> float:
        """Return the error of `y`; refuse errors beyond rounding. `what` names the kernel in the message.

        Where it `is_lossy`, some or all values may have been rounded to float32.
        """
        errors = self.errors(y)
        largest, eps = float(errors.max(initial=0.0)), float(np.finfo(y.dtype).eps)
        if largest <= _ROUNDINGS_PER_ENTRY * eps:  # as an empty row is allowed
            return largest
        allowed = _ROUNDINGS_PER_ENTRY * (self.row_lengths + 1.0) * eps
        if is_lossy:
            scale = np.where(self.magnitude > 0, self.magnitude, 1)
            allowed += (_ROUNDED + self.row_lengths * _ROUNDED_AWAY / scale).astype(np.float64)
        wrong = np.flatnonzero(errors > allowed)
        if len(wrong):
            row = wrong[0]
            raise WrongResultError(
                f"{what} is wrong in {len(wrong):,} rows: row {row} has relative error {errors[row]:.1e}, "
                f"expected at most {allowed[row]:.1e}; please report this"
            )
        return largest


@njit(nogil=True, cache=True)
def _multiply(indptr, indices, data, x, y, low, magnitude, first, last):  # type: ignore[no-untyped-def]
    """Compute rows; numbers have their real part, and an imaginary one if they are complex."""
    is_complex = data.shape[1] > 1
    for row in range(first, last):
        y_re = low_re = y_im = low_im = size = not_finite = 0.0
        for k in range(indptr[row], indptr[row + np.uint64(1)]):
            a_re, x_re = data[k, 0], x[indices[k], 0]
            y_re, low_re = _added(y_re, low_re, a_re, x_re)
            not_finite += (a_re - a_re) + (x_re - x_re)
            if is_complex:
                a_im, x_im = data[k, 1], x[indices[k], 1]
                y_re, low_re = _added(y_re, low_re, -a_im, x_im)
                y_im, low_im = _added(y_im, low_im, a_re, x_im)
                y_im, low_im = _added(y_im, low_im, a_im, x_re)
                not_finite += (a_im - a_im) + (x_im - x_im)
                if (a_re != 0.0 or a_im != 0.0) and (x_re != 0.0 or x_im != 0.0):  # no infinity times 0
                    size += np.hypot(a_re, a_im) * np.hypot(x_re, x_im)
            else:
                size += abs(a_re * x_re)
        y[row, 0] = y_re + low_re
        low[row, 0] = (y_re - y[row, 0]) + low_re
        if is_complex:
            y[row, 1] = y_im + low_im
            low[row, 1] = (y_im - y[row, 1]) + low_im
        magnitude[row] = size + not_finite


@inner
def _added(high, low, a, b):  # type: ignore[no-untyped-def]
    """Return high + low + a b in two numbers."""
    term = a * b
    c, d = _HALVES * a, _HALVES * b
    a_high, b_high = c - (c - a), d - (d - b)
    a_low, b_low = a - a_high, b - b_high
    lost = a_low * b_low - (((term - a_high * b_high) - a_low * b_high) - a_high * b_low)
    if lost - lost != 0.0:  # the halves of a huge number are not finite
        lost = 0.0
    total = high + term
    added = total - high
    return total, low + (((high - (total - added)) + (term - added)) + lost)
