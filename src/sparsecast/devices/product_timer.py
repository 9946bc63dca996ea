"""Products of a matrix on a device: built, checked against the reference result, and timed in turn.

And what a product loses where values of double precision are stored as float32.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.devices.binding import Bound, prepared
from sparsecast.devices.device import Device
from sparsecast.devices.reference import ReferenceProduct
from sparsecast.formats.narrowing import LOSSY, rounded
from sparsecast.measuring.timing import Call, Effort, Timing, measure
from sparsecast.records import Candidate

Key = TypeVar("Key", bound=Hashable)


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
        named = {str(number): call for number, call in enumerate(calls.values())}
        cores = self.device.core_speed(self._threads) if effort.wait_s > 0 else None
        timings = measure(named, effort, on_sample, self.device.clock(), cores)
        return dict(zip(calls, timings.values(), strict=True))


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
