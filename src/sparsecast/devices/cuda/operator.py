"""An operator whose matrix lies on a device: for x there and for x here."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.devices.cuda.launching import (
    DeviceArray,
    DeviceProduct,
    interface,
    is_device_array,
    pointer,
    scratch,
    upload,
)
from sparsecast.errors import InputError
from sparsecast.operators import BlockOperator, RowProduct


class DeviceOperator(BlockOperator):
    """A SciPy LinearOperator on a device, whose row blocks are all queued at once.

    An x on the device stays there and so does y: nothing is copied and nothing waits, so the caller waits
    for the stream before reading y elsewhere. A NumPy x is copied there and y back, which most often lasts
    longer than the product.

    Parameters
    ----------
    shape : (int, int)
        Rows and columns of the matrix.
    dtype : dtype
        Type of the values, of x and of y.
    blocks : list of (int, int, DeviceProduct)
        First row, row after the last, and the product of each block; together all rows in order.
    """

    def __init__(
        self, shape: tuple[int, int], dtype: np.dtype[Any], blocks: list[tuple[int, int, DeviceProduct]]
    ) -> None:
        super().__init__(shape, dtype, [RowProduct(0, shape[0], self._from_host)])
        self.device_blocks = blocks
        self._copies: tuple[DeviceArray, DeviceArray] | None = None
        self._one_copy = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Bytes of the matrix on the device."""
        return sum(product.nbytes for _, _, product in self.device_blocks)

    def dot(self, x: Any) -> Any:
        """Return what ``op @ x`` is, with an x that may lie on the device."""
        return self.matvec(x) if is_device_array(x) else super().dot(x)

    def matvec(self, x: Any, out: Any = None, stream: Any = 0) -> Any:
        """Return y = A x.

        Parameters
        ----------
        x : array or device array of shape (cols,)
            A NumPy array as a BlockOperator takes it; or a contiguous one of the operator's dtype on the
            device: from numba.cuda, CuPy, torch or whatever has a ``__cuda_array_interface__``.
        out : array or device array of shape (rows,), optional
            Where x lies, of the operator's dtype, contiguous and sharing no memory with `x`; overwritten and
            returned. Without it, an array is allocated, which on a device may wait for all that it does.
        stream : optional
            For x on the device: as in a DeviceProduct.

        Returns
        -------
        array, or device array of numba.cuda

        Raises
        ------
        InputError
            If `x` or `out` is of another shape or dtype, lies elsewhere than the other or shares its memory.
        """
        if out is not None and is_device_array(x) != is_device_array(out):
            raise InputError("only one of x and out is on the device: expected both there, or none; copy one")
        if not is_device_array(x):
            return super().matvec(x, out)
        if out is None:
            out = scratch(self.shape[0], self.dtype)
        x_bytes = _checked_bytes(x, "x", self.shape[1], self.dtype)
        out_bytes = _checked_bytes(out, "out", self.shape[0], self.dtype)
        if max(x_bytes.start, out_bytes.start) < min(x_bytes.stop, out_bytes.stop):
            raise InputError("out shares memory with x: expected an array of its own; copy one of them")
        self._launch(x, out, stream)
        return out

    def _launch(self, x: DeviceArray, out: DeviceArray, stream: Any) -> None:
        start = pointer(x)
        for first, _, product in self.device_blocks:
            product.launch(start, pointer(out, first), stream)

    def _from_host(self, x: NDArray[Any], out: NDArray[Any]) -> None:
        with self._one_copy:
            if self._copies is None:
                self._copies = upload("x", x)[0], scratch(self.shape[0], self.dtype)
            else:
                self._copies[0].copy_to_device(x)
            self._launch(*self._copies, 0)
            self._copies[1].copy_to_host(out)


def _checked_bytes(array: DeviceArray, name: str, entries: int, dtype: np.dtype[Any]) -> range:
    """Return the addresses of a device array, refusing one that no kernel can take."""
    described = interface(array)
    shape, found, strides = (
        tuple(described["shape"]),
        np.dtype(described["typestr"]),
        described.get("strides"),
    )
    start, is_read_only = described["data"]
    is_contiguous = strides is None or entries < 2 or tuple(strides) == (found.itemsize,)
    is_usable = is_contiguous and not (name == "out" and is_read_only)
    if shape != (entries,) or found != dtype or not is_usable:
        flaw = "" if is_usable else ", strided or read-only"
        raise InputError(
            f"{name} on the device is {found} of shape {shape}{flaw}: "
            f"expected contiguous, writable {dtype} of shape ({entries},); allocate it so"
        )
    return range(start or 0, (start or 0) + entries * dtype.itemsize)
