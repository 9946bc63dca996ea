"""The oracle: a product in extended precision, slow and plain, that every kernel is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.errors import WrongResultError

_ENTRIES_AT_ONCE = 1 << 20

#: Roundings allowed for each entry of the longest row, in units of the dtype's machine epsilon.
_ROUNDINGS_PER_ENTRY = 2.0


@dataclass(frozen=True)
class ReferenceProduct:
    """y = A x in extended precision, and what its rounding may cost.

    Attributes
    ----------
    y : longdouble array of shape (rows,)
    magnitude : longdouble array of shape (rows,)
        The sum over each row of abs(a x).
    row_lengths : array of shape (rows,)
    """

    y: NDArray[np.longdouble]
    magnitude: NDArray[np.longdouble]
    row_lengths: NDArray[Any]

    @classmethod
    def of(cls, A: csr_array[Any], x: NDArray[Any]) -> ReferenceProduct:
        """Compute the product row by row, about a million entries at a time."""
        rows = A.shape[0]
        y = np.zeros(rows, dtype=np.longdouble)
        magnitude = np.zeros(rows, dtype=np.longdouble)
        first = 0
        while first < rows:
            end = int(np.searchsorted(A.indptr, A.indptr[first] + _ENTRIES_AT_ONCE, side="right")) - 1
            last = min(max(end, first + 1), rows)
            start, stop = A.indptr[first], A.indptr[last]
            with np.errstate(invalid="ignore", over="ignore"):
                terms = A.data[start:stop].astype(np.longdouble) * x[A.indices[start:stop]]
                _sum_rows(terms, A.indptr[first : last + 1] - start, y[first:last])
                _sum_rows(np.abs(terms), A.indptr[first : last + 1] - start, magnitude[first:last])
            first = last
        return cls(y, magnitude, np.diff(A.indptr))

    def error(self, y: NDArray[Any]) -> float:
        """Return the largest abs(y - oracle) / magnitude over the rows.

        Rows whose oracle is not finite must not be finite in `y` either; otherwise the error is infinite.
        """
        finite = np.isfinite(self.magnitude)
        if np.isfinite(y[~finite]).any():
            return float("inf")
        difference = np.abs(y[finite] - self.y[finite])
        magnitude = self.magnitude[finite]
        exact = magnitude == 0
        if difference[exact].any() or np.isnan(difference).any():
            return float("inf")
        # Below the least normal number of the dtype, a rounding no longer shrinks with the value.
        least = np.longdouble(np.finfo(y.dtype).tiny)
        return float((difference[~exact] / np.maximum(magnitude[~exact], least)).max(initial=0.0))

    def check(self, y: NDArray[Any], what: str) -> float:
        """Return the error of `y`, refusing more than rounding explains.

        Parameters
        ----------
        y : array of shape (rows,)
            Result of a kernel.
        what : str
            The kernel's name, for the message.

        Raises
        ------
        WrongResultError
            If the error exceeds two roundings an entry of the longest row.
        """
        error = self.error(y)
        longest = int(self.row_lengths.max(initial=0))
        allowed = _ROUNDINGS_PER_ENTRY * (longest + 1) * float(np.finfo(y.dtype).eps)
        if not error <= allowed:
            raise WrongResultError(
                f"{what} is wrong: relative error {error:.1e}, expected at most {allowed:.1e}; "
                f"please report this"
            )
        return error


def _sum_rows(terms: NDArray[np.longdouble], indptr: NDArray[Any], sums: NDArray[np.longdouble]) -> None:
    occupied = np.flatnonzero(np.diff(indptr))
    if len(occupied):
        sums[occupied] = np.add.reduceat(terms, indptr[occupied])
