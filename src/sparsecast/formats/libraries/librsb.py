"""librsb: recursive blocks, and half of a symmetric matrix."""

from __future__ import annotations

import ctypes
import ctypes.util
import weakref
from functools import cache
from typing import Any, ClassVar

from numpy.typing import NDArray
from scipy.sparse import csr_array, tril

from sparsecast.formats.libraries import LIBRARIES
from sparsecast.formats.libraries.library import GNU_LINGER_S, Library, release
from sparsecast.operators.block_operator import Product

#: Constants of rsb.h and rsb_types.h.
_PLAIN, _LOWER_SYMMETRIC, _THREADS = 0x4E, 0x400010, 9

_TYPES: dict[str, tuple[bytes, Any]] = {"float64": (b"D", ctypes.c_double), "float32": (b"S", ctypes.c_float)}


@LIBRARIES.register("librsb")
class LibRSB(Library):
    """As it builds a matrix by itself: its tuning, seconds a matrix, is left out."""

    name: ClassVar[str] = "librsb"
    title: ClassVar[str] = "librsb"
    kernel: ClassVar[str] = "rsb_spmv"
    remedy: ClassVar[str] = "install librsb by your system's packages"
    index_bits: ClassVar[tuple[int, ...]] = (32,)
    linger_s: ClassVar[float] = GNU_LINGER_S

    @classmethod
    def version(cls) -> str | None:
        return _found()

    @classmethod
    def use_threads(cls, threads: int) -> None:
        _librsb().rsb_lib_set_opt(_THREADS, ctypes.byref(ctypes.c_int(threads)))

    def product(self) -> Product:
        rsb, pointer, status = _librsb(), ctypes.c_void_p, ctypes.c_int()
        code, value = _TYPES[self.dtype.name]
        A = self.matrix
        is_symmetric = A.shape[0] == A.shape[1] and not abs(A - A.T).sum()
        stored = csr_array(tril(A, format="csr")) if is_symmetric else A
        arrays = (pointer(part.ctypes.data) for part in (stored.data, stored.indptr, stored.indices))
        sizes = stored.nnz, ctypes.c_char(code), *A.shape, 0, 0, _LOWER_SYMMETRIC if is_symmetric else 0
        matrix = pointer(rsb.rsb_mtx_alloc_from_csr_const(*arrays, *sizes, ctypes.byref(status)))
        if not matrix or status.value:
            raise self.refused(f"status {status.value}")
        one, zero = value(1.0), value(0.0)
        alpha, beta = ctypes.byref(one), ctypes.byref(zero)

        def product(x: NDArray[Any], out: NDArray[Any]) -> None:
            ends = pointer(x.ctypes.data), 1, beta, pointer(out.ctypes.data), 1
            if failed := rsb.rsb_spmv(_PLAIN, alpha, matrix, *ends):
                raise self.refused(f"status {failed}")

        weakref.finalize(product, release, rsb.rsb_mtx_free, matrix)
        return product


@cache
def _found() -> str | None:
    return ctypes.util.find_library("rsb")


@cache
def _librsb() -> ctypes.CDLL:
    try:
        rsb = ctypes.CDLL(_found() or "librsb.so.0")
    except OSError as error:
        raise LibRSB.missing(error) from error
    rsb.rsb_mtx_alloc_from_csr_const.restype = ctypes.c_void_p
    if status := rsb.rsb_lib_init(None):
        raise LibRSB.missing(f"it did not start, status {status}")
    return rsb
