"""librsb: recursive blocks, and half of a symmetric matrix."""

from __future__ import annotations

import ctypes
from typing import Any, ClassVar

from scipy.sparse import csr_array, tril

from sparsecast.formats.libraries import LIBRARIES
from sparsecast.formats.libraries.library import GNU_LINGER_S, CLibrary
from sparsecast.operators.block_operator import Product

#: Constants of rsb.h and rsb_types.h.
_PLAIN, _LOWER_SYMMETRIC, _THREADS = 0x4E, 0x400010, 9


@LIBRARIES.register("librsb")
class LibRSB(CLibrary):
    """As it builds a matrix by itself: its tuning, seconds a matrix, is left out."""

    name: ClassVar[str] = "librsb"
    title: ClassVar[str] = "librsb"
    kernel: ClassVar[str] = "rsb_spmv"
    distribution: ClassVar[str] = "librsb"
    file: ClassVar[str] = "rsb"
    remedy: ClassVar[str] = "install librsb by your system's packages"
    linger_s: ClassVar[float] = GNU_LINGER_S

    @classmethod
    def load(cls) -> Any:
        rsb = super().load()
        rsb.rsb_mtx_alloc_from_csr_const.restype = ctypes.c_void_p
        if status := rsb.rsb_lib_init(None):
            raise OSError(f"it did not start, status {status}")
        return rsb

    @classmethod
    def use_threads(cls, threads: int) -> None:
        cls.loaded().rsb_lib_set_opt(_THREADS, ctypes.byref(ctypes.c_int(threads)))

    def product(self) -> Product:
        rsb, pointer, status = self.loaded(), ctypes.c_void_p, ctypes.c_int()
        letter, value = self.kinds[self.dtype.name]
        A = self.matrix
        is_symmetric = A.shape[0] == A.shape[1] and not abs(A - A.T).sum()
        stored = csr_array(tril(A, format="csr")) if is_symmetric else A
        arrays = (pointer(part.ctypes.data) for part in (stored.data, stored.indptr, stored.indices))
        kind = ctypes.c_char(letter.upper().encode())
        sizes = stored.nnz, kind, *A.shape, 0, 0, _LOWER_SYMMETRIC if is_symmetric else 0
        matrix = pointer(rsb.rsb_mtx_alloc_from_csr_const(*arrays, *sizes, ctypes.byref(status)))
        if not matrix or status.value:
            raise self.refused(f"status {status.value}")
        alpha, beta = (ctypes.byref(value(number)) for number in (1.0, 0.0))
        multiply, given = rsb.rsb_spmv, (_PLAIN, alpha, matrix)
        return self.product_of(lambda x, y: multiply(*given, x, 1, beta, y, 1), rsb.rsb_mtx_free, matrix)
