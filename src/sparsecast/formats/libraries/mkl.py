"""MKL: its inspector-executor product, hinted and optimised."""

from __future__ import annotations

import ctypes
import os
from typing import Any, ClassVar

from sparsecast.formats.libraries import LIBRARIES
from sparsecast.formats.libraries.library import GNU_LINGER_S, PRODUCTS, CLibrary
from sparsecast.operators.block_operator import Product

#: Constants of mkl_spblas.h and mkl_service.h.
_NON_TRANSPOSE, _GENERAL, _GNU_THREADS = 10, 20, 3


class _Description(ctypes.Structure):
    """MKL's struct matrix_descr."""

    _fields_ = (("type", ctypes.c_int), ("mode", ctypes.c_int), ("diag", ctypes.c_int))


@LIBRARIES.register("mkl")
class MKL(CLibrary):
    name: ClassVar[str] = "mkl"
    title: ClassVar[str] = "MKL"
    kernel: ClassVar[str] = "inspector-executor"
    distribution: ClassVar[str] = "mkl"
    file: ClassVar[str] = "mkl_rt"
    remedy: ClassVar[str] = "pip install mkl"
    linger_s: ClassVar[float] = GNU_LINGER_S
    call_version: ClassVar[int] = 1

    @classmethod
    def load(cls) -> Any:
        mkl = super().load()
        if "MKL_THREADING_LAYER" not in os.environ:
            # Threads of Intel's OpenMP stay awake for 0.2 s after a product, on the cores of what comes next.
            mkl.MKL_Set_Threading_Layer(_GNU_THREADS)
        return mkl

    @classmethod
    def use_threads(cls, threads: int) -> None:
        # That of the calling thread comes first, and PyTorch sets it.
        cls.loaded().MKL_Set_Num_Threads(threads)
        cls.loaded().MKL_Set_Num_Threads_Local(threads)

    def product(self) -> Product:
        mkl, pointer = self.loaded(), ctypes.c_void_p
        letter, value = self.kinds[self.dtype.name]
        handle, description = pointer(), _Description(_GENERAL, 0, 0)
        places = (a.ctypes.data for a in (self.indptr, self.indptr[1:], self.indices, self.data))
        create, multiply = (getattr(mkl, f"mkl_sparse_{letter}_{name}") for name in ("create_csr", "mv"))
        status = create(ctypes.byref(handle), 0, *self.shape, *map(pointer, places))
        status = status or mkl.mkl_sparse_set_mv_hint(handle, _NON_TRANSPOSE, description, PRODUCTS)
        status = status or mkl.mkl_sparse_optimize(handle)
        if status:
            raise self.refused(f"status {status}")
        setting, zero = (_NON_TRANSPOSE, value(1.0), handle, description), value(0.0)
        return self.product_of(lambda x, y: multiply(*setting, x, zero, y), mkl.mkl_sparse_destroy, handle)
