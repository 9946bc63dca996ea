"""An operator whose matrix is on a device; x may be on the device or on the host."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.devices.gpu.launching import (
    SIMULATED,
    DeviceArray,
    as_graph,
    cuda,
    interface,
    is_device_array,
    pointer,
    scratch,
    upload,
)
from sparsecast.errors import InputError
from sparsecast.operators.block_operator import BlockOperator, LocalSpace, one_by_one


@dataclass(frozen=True)
class DeviceSpace(LocalSpace):
    """Vectors on the device, of any library whose arrays have a ``__cuda_array_interface__``.

    Vectors of zeros are of numba.cuda and have no addition; other libraries wrap them without a copy. `dot`
    and `norm` wait for the device and copy the vectors to the host, which takes longer than a product.
    """

    def zeros(self) -> DeviceArray:
        return upload("a vector", np.zeros(self.size, dtype=self.dtype))[0]

    def dot(self, x: DeviceArray, y: DeviceArray) -> Any:
        return super().dot(_on_host(x), _on_host(y))

    def norm(self, x: DeviceArray) -> float:
        return super().norm(_on_host(x))


class DeviceOperator(BlockOperator):
    """A SciPy LinearOperator on a device, whose row blocks are all queued at once.

    If x is on the device, so is y: nothing is copied and nothing waits, so the caller waits for the stream
    before reading y elsewhere. A NumPy x is copied to the device and y back, which mostly takes longer than
    the product.

    Its parameters are those of a BlockOperator; the products of its blocks are DeviceProducts.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._copies: tuple[DeviceArray, DeviceArray] | None = None
        self._one_copy = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Bytes of the matrix on the device, without those of its transpose."""
        return sum(block.product.nbytes for block in self.blocks)

    @property
    def domain(self) -> DeviceSpace:
        return DeviceSpace(self.shape[1], self.dtype)

    @property
    def range(self) -> DeviceSpace:
        return DeviceSpace(self.shape[0], self.dtype)

    def dot(self, x: Any) -> Any:
        """Return ``op @ x``, with an x that may lie on the device."""
        return self.matvec(x) if is_device_array(x) else super().dot(x)

    def matvec(self, x: Any, out: Any = None, stream: Any = 0) -> Any:
        """Return y = A x.

        Parameters
        ----------
        x : array or device array of shape (cols,)
            A NumPy array as for a BlockOperator, or a contiguous device array of the operator's dtype: of
            numba.cuda, CuPy, torch or any library with a ``__cuda_array_interface__``.
        out : array or device array of shape (rows,), optional
            On the same side as x, of the operator's dtype, contiguous, without overlap with `x`; overwritten
            and returned. By default a new array, whose allocation may wait for the device.
        stream : optional
            For x on the device: as in a DeviceProduct.
        """
        if out is not None and is_device_array(x) != is_device_array(out):
            raise InputError("only one of x and out is on the device: expected both there, or none; copy one")
        if not is_device_array(x):
            return super().matvec(x, out)
        if out is None:
            out = scratch(self.shape[0], self.dtype)
        self._refuse_unsuited(x, out)
        self._launch(x, out, stream)
        return out

    def graph(self, x: DeviceArray, out: DeviceArray, products: int = 1) -> Callable[..., None]:
        """Return a function that queues so many products at once, as a CUDA graph.

        For iterations of small matrices: a product of 50,000 entries that is launched by itself takes 5.3 us
        on an H100, and 2.2 us in a graph of 32 (`make gpu-campaign`).

        Parameters
        ----------
        x, out : device arrays of shape (cols,) and (rows,)
            As for `matvec`. Each run reads x and writes out.
        products : int
            With more than 1, for a square matrix, the products go on from y: out = A x, x = A out and so on,
            so that A^products x is in `out` if the number is odd, and else in `x`.

        Returns
        -------
        function (stream=0)
            `stream` is as for `matvec`. Without cuda.core, products are queued one by one.
        """
        if products < 1 or (products > 1 and self.shape[0] != self.shape[1]):
            expected = "at least 1" if self.shape[0] == self.shape[1] else "1, as the matrix is not square"
            raise InputError(f"products = {products}: expected {expected}; leave it out")
        if not (is_device_array(x) and is_device_array(out)):
            raise InputError("a graph of an array of the host: expected x and out on the device; copy them")
        self._refuse_unsuited(x, out)
        if products > 1:
            self._refuse_unsuited(out, x)

        def queue_all(stream: Any) -> None:
            for number in range(products):
                self._launch(*((out, x) if number % 2 else (x, out)), stream)

        return as_graph(queue_all)

    def rmatvec(self, x: Any, out: Any = None, stream: Any = 0) -> Any:
        """Return y = A^H x, as ``op.H.matvec``: x has the shape of y there, and out that of x."""
        return self._adjoint().matvec(x, out, stream)

    def _refuse_unsuited(self, x: Any, out: Any) -> None:
        x_bytes = _checked_bytes(x, "x", self.shape[1], self.dtype)
        out_bytes = _checked_bytes(out, "out", self.shape[0], self.dtype)
        if max(x_bytes.start, out_bytes.start) < min(x_bytes.stop, out_bytes.stop):
            raise InputError("out shares memory with x: expected an array of its own; copy one of them")

    def _launch(self, x: DeviceArray, out: DeviceArray, stream: Any) -> None:
        start = pointer(x)
        for block in self.blocks:
            block.product.launch(start, pointer(out, block.first), stream)

    def _multiply(self, x: NDArray[Any], out: NDArray[Any]) -> None:
        with self._one_copy:
            if self._copies is None:
                self._copies = upload("x", x)[0], scratch(self.shape[0], self.dtype)
            else:
                self._copies[0].copy_to_device(x)
            self._launch(*self._copies, 0)
            self._copies[1].copy_to_host(out)

    def _multiply_multivector(self, X: NDArray[Any], out: NDArray[Any]) -> None:
        one_by_one(self._multiply, X, out)


def _on_host(x: DeviceArray) -> NDArray[Any]:
    """Return a copy of a vector of the device."""
    # The simulator knows only arrays of its own.
    copy: NDArray[Any] = (x if SIMULATED else cuda.as_cuda_array(x)).copy_to_host()
    return copy


def _checked_bytes(array: DeviceArray, name: str, entries: int, dtype: np.dtype[Any]) -> range:
    """Return the addresses of a device array; refuse an array that no kernel can take."""
    described = interface(array)
    shape, dtype_of_array = tuple(described["shape"]), np.dtype(described["typestr"])
    strides = described.get("strides")
    start, is_read_only = described["data"]
    is_contiguous = strides is None or entries < 2 or tuple(strides) == (dtype_of_array.itemsize,)
    is_usable = is_contiguous and not (name == "out" and is_read_only)
    if shape != (entries,) or dtype_of_array != dtype or not is_usable:
        flaw = "" if is_usable else ", strided or read-only"
        raise InputError(
            f"{name} on the device is {dtype_of_array} of shape {shape}{flaw}: "
            f"expected contiguous, writable {dtype} of shape ({entries},); allocate it so"
        )
    return range(start or 0, (start or 0) + entries * dtype.itemsize)
