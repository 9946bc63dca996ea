"""What a product loses where values of double precision are stored as float32."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.devices.product_timer import right_hand_side
from sparsecast.devices.reference import ReferenceProduct
from sparsecast.formats.narrowing import rounded


@dataclass(frozen=True, slots=True)
class Rounding:
    """The measured errors of rounded values; 0 where float32 holds them all."""

    #: Largest relative error of a finite value: at most 2**-24, about 6e-8, unless values are below the least
    #: normal float32, 1.2e-38.
    value_error: float
    #: Largest error of a row of y = A x, for the x of measurements, over its sum of abs(a x). For any x it is
    #: at most `value_error`. Relative to y itself it is larger where the terms of a row cancel.
    y_error: float

    @classmethod
    def of(cls, A: csr_array[Any], dtype: str) -> Self:
        """Return the errors of all values of a matrix in `dtype`, float64 or complex128; as `rounded`."""
        x, nnz = right_hand_side(A.shape[1], dtype), int(A.indptr[-1])
        data = np.ascontiguousarray(A.data[:nnz], dtype=dtype)
        with np.errstate(invalid="ignore"):
            lost = data - rounded(data)  # exact
        lost[~np.isfinite(data)] = 0
        both = (csr_array((each, A.indices[:nnz], A.indptr), shape=A.shape) for each in (data, lost))
        whole, part = (ReferenceProduct.of(matrix, x) for matrix in both)
        return cls(_largest_ratio(lost, np.abs(data)), _largest_ratio(part.y, whole.magnitude))

    def sentence(self) -> str:
        if self.value_error == 0:
            return "Values of float32 lose nothing of this matrix."
        return (
            f"Lossy values of float32: the largest relative error is {self.value_error:.1e} of a value, and "
            f"{self.y_error:.1e} of a row of y against its sum of |a x|."
        )


def _largest_ratio(part: NDArray[Any], whole: NDArray[Any]) -> float:
    """Return the largest absolute value of a part of what is above 0 and finite."""
    counts = np.isfinite(whole) & (whole > 0)
    return float((np.abs(part[counts]) / whole[counts]).max(initial=0.0))
