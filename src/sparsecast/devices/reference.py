"""The reference result: a slow, plain product in extended precision, compared with every kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.errors import WrongResultError

_ENTRIES_AT_ONCE = 1 << 20

#: Roundings allowed for each entry of the longest row, in units of the dtype's machine epsilon. A product and
#: a sum of real numbers round by half of one each. So does a complex sum, and a complex product by at most
#: sqrt(5) halves (Brent, Percival, Zimmermann 2007, Error bounds on complex floating-point multiplication):
#: the allowance holds for both.
_ROUNDINGS_PER_ENTRY = 2.0

#: Largest error that float32 makes of a value: relative to it, and beside that, times an x of measurements.
_ROUNDED, _ROUNDED_AWAY = 2.0**-24, 2.0**-148


@dataclass(frozen=True)
class ReferenceProduct:
    """y = A x in extended precision, longdouble or clongdouble, and the scale of its rounding errors."""

    y: NDArray[Any]  # shape (rows,)
    #: Shape (rows,): the sum over each row of abs(a x), the modulus of complex terms.
    magnitude: NDArray[np.longdouble]
    row_lengths: NDArray[Any]  # shape (rows,)

    @classmethod
    def of(cls, A: csr_array[Any], x: NDArray[Any]) -> ReferenceProduct:
        """Compute the product row by row, about a million entries at a time."""
        rows = A.shape[0]
        extended = np.result_type(A.dtype, x.dtype, np.longdouble)
        y = np.zeros(rows, dtype=extended)
        magnitude = np.zeros(rows, dtype=np.longdouble)
        first = 0
        while first < rows:
            end = int(np.searchsorted(A.indptr, int(A.indptr[first]) + _ENTRIES_AT_ONCE, side="right")) - 1
            last = min(max(end, first + 1), rows)
            start, stop = A.indptr[first], A.indptr[last]
            with np.errstate(invalid="ignore", over="ignore"):
                terms = A.data[start:stop].astype(extended) * x[A.indices[start:stop]]
                _sum_rows(terms, A.indptr[first : last + 1] - start, y[first:last])
                _sum_rows(np.abs(terms), A.indptr[first : last + 1] - start, magnitude[first:last])
            first = last
        return cls(y, magnitude, np.diff(A.indptr))

    def errors(self, y: NDArray[Any]) -> NDArray[np.float64]:
        """Return abs(y - reference) / magnitude of each row.

        Where the reference is not finite, `y` must not be finite either; else the error is infinite, as for a
        NaN. The error of rows whose terms may overflow the dtype is 0.
        """
        limits = np.finfo(y.dtype)
        infinite = ~np.isfinite(self.magnitude)
        # Below the least normal number of the dtype, a rounding no longer shrinks with the value.
        scale = np.where(self.magnitude > 0, np.maximum(self.magnitude, limits.tiny), 1)
        with np.errstate(invalid="ignore"):
            error: NDArray[Any] = np.abs(y - self.y) / scale
        error[(self.magnitude == 0) & (error > 0)] = np.inf
        error[np.isnan(error)] = np.inf
        error[infinite] = np.where(np.isfinite(y[infinite]), np.inf, 0)
        error[~infinite & (self.magnitude > limits.max)] = 0
        return error.astype(np.float64)

    def error(self, y: NDArray[Any]) -> float:
        return float(self.errors(y).max(initial=0.0))

    def check(self, y: NDArray[Any], what: str, is_lossy: bool = False) -> float:
        """Return the error of `y`; refuse errors beyond rounding. `what` names the kernel in the message.

        Where it `is_lossy`, some or all values may have been rounded to float32.
        """
        errors = self.errors(y)
        allowed = _ROUNDINGS_PER_ENTRY * (self.row_lengths + 1.0) * float(np.finfo(y.dtype).eps)
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
        return float(errors.max(initial=0.0))


def _sum_rows(terms: NDArray[Any], indptr: NDArray[Any], sums: NDArray[Any]) -> None:
    occupied = np.flatnonzero(np.diff(indptr))
    if len(occupied):
        sums[occupied] = np.add.reduceat(terms, indptr[occupied])
