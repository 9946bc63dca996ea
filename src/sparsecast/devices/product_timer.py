"""Products of a matrix on a device: built, checked against the reference result, and timed in turn.

The reference result is that of a plain product in twice the precision of double, compared with every kernel.
It also tells what a product loses where values of double precision are stored as float32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.devices.binding import Bound, prepared
from sparsecast.devices.device import Device
from sparsecast.errors import WrongResultError
from sparsecast.formats.narrowing import LOSSY, rounded
from sparsecast.measuring.timing import Call, Effort, Key, Timing, measure
from sparsecast.records import Candidate
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
def _multiply(indptr, indices, data, x, y, low, magnitude, first, last):
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
def _added(high, low, a, b):
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


@dataclass(frozen=True, slots=True)
class BuiltProduct:
    """A Candidate, built and checked.

    `convert_s` is the time to build it from CSR, without compiling; `error` is the largest relative error of
    a row.
    """

    candidate: Candidate
    bound: Bound
    convert_s: float
    error: float


class ProductTimer:
    """A matrix with x and y on a device.

    `like` gives the dtype, the index width, the threads and the vectors of all products. `A` is the matrix in
    these types; `x` and `out` are as the device takes vectors.
    """

    def __init__(self, A: csr_array[Any], like: Candidate, device: Device) -> None:
        self.A, self.device, self._threads = prepared(A, like.dtype, like.index_bits), device, like.threads
        device.require_library()
        rows, cols = self.A.shape
        x = right_hand_side(cols * like.vectors, like.dtype)
        self._vectors, self._shape = like.vectors, (rows,) if like.vectors == 1 else (rows, like.vectors)
        self.x = device.put(x if like.vectors == 1 else x.reshape(cols, like.vectors))
        self.out = device.put(np.empty(self._shape, dtype=self.A.dtype))

    @cached_property
    def _references(self) -> dict[int, ReferenceProduct]:
        """The reference results by column of X: three stand for all, which other tests of kernels try."""
        X = self.device.take(self.x).reshape(self.A.shape[1], self._vectors)
        checked = {0, self._vectors // 2, self._vectors - 1}
        return {each: ReferenceProduct.of(self.A, X[:, each]) for each in checked}

    def build(self, candidate: Candidate) -> BuiltProduct:
        """Build a Candidate, whose code is loaded, and check it."""
        bound, convert_s = self.device.bind(self.A, candidate)
        product, name = bound.of(candidate.vectors), f"{candidate.format} {candidate.kernel}"
        error = self.check(product, name, [candidate])
        return BuiltProduct(candidate, bound, convert_s, error)

    def call(self, product: BuiltProduct) -> Call:
        """Return the callable that is timed."""
        return self.device.call(product.candidate, product.bound, self.x, self.out)

    def unchecked(self, candidate: Candidate) -> Call:
        """Return the callable of a Candidate whose result is not checked."""
        self.device.warm_up(candidate)
        return self.device.call(candidate, self.device.bind(self.A, candidate)[0], self.x, self.out)

    def check(self, product: Callable[[Any, Any], object], name: str, of: Iterable[Candidate] = ()) -> float:
        """Return the largest relative error of `product`; a WrongResultError if it exceeds rounding.

        That of values counts where one of the Candidates that it consists `of` has lossy ones.
        """
        # Filled with NaN, so that a row the kernel forgets is found out.
        out = self.device.put(np.full(self._shape, np.nan, dtype=self.A.dtype))
        product(self.x, out)
        found = self.device.take(out).reshape(self.A.shape[0], self._vectors)
        is_lossy = any(each.parameters.get("values") == LOSSY for each in of)
        references = self._references.items()
        return max(reference.check(found[:, each], name, is_lossy) for each, reference in references)

    def time(
        self, calls: Mapping[Key, Call], effort: Effort, on_sample: Callable[[], None] = lambda: None
    ) -> dict[Key, Timing]:
        """Return the Timing of each call on the device, sampled in turn.

        They wait for full speed of the cores, unless the effort has no time for that.
        """
        cores = self.device.core_speed(self._threads) if effort.wait_s > 0 else None
        return measure(calls, effort, on_sample, self.device.clock(), cores)


def right_hand_side(cols: int, dtype: str) -> np.ndarray[Any, np.dtype[Any]]:
    """Return the x of all measurements: uniform in [-1, 1), the same every time."""
    generator = np.random.default_rng(0)
    x = generator.uniform(-1.0, 1.0, cols).astype(dtype)
    if x.dtype.kind == "c":
        x.imag = generator.uniform(-1.0, 1.0, cols)
    return x


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
