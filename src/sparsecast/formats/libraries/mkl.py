"""MKL: its inspector-executor product, hinted and optimised."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import weakref
from functools import cache
from importlib import metadata
from typing import Any, ClassVar

from numpy.typing import NDArray

from sparsecast.formats.libraries import LIBRARIES
from sparsecast.formats.libraries.library import GNU_LINGER_S, PRODUCTS, Library, release
from sparsecast.operators.block_operator import Product

#: Constants of mkl_spblas.h and mkl_service.h.
_NON_TRANSPOSE, _GENERAL, _GNU_THREADS = 10, 20, 3

#: The letter of a type in the names of functions, and the C type of a value.
_TYPES: dict[str, tuple[str, Any]] = {"float64": ("d", ctypes.c_double), "float32": ("s", ctypes.c_float)}


class _Description(ctypes.Structure):
    """MKL's struct matrix_descr."""

    _fields_ = (("type", ctypes.c_int), ("mode", ctypes.c_int), ("diag", ctypes.c_int))


@LIBRARIES.register("mkl")
class MKL(Library):
    name: ClassVar[str] = "mkl"
    title: ClassVar[str] = "MKL"
    kernel: ClassVar[str] = "inspector-executor"
    distribution: ClassVar[str] = "mkl"
    remedy: ClassVar[str] = "pip install mkl"
    index_bits: ClassVar[tuple[int, ...]] = (32,)
    linger_s: ClassVar[float] = GNU_LINGER_S

    @classmethod
    def version(cls) -> str | None:
        return super().version() or (ctypes.util.find_library("mkl_rt") and "of the system")

    @classmethod
    def use_threads(cls, threads: int) -> None:
        _mkl().MKL_Set_Num_Threads(threads)

    def product(self) -> Product:
        mkl, pointer = _mkl(), ctypes.c_void_p
        letter, value = _TYPES[self.dtype.name]
        handle, description = pointer(), _Description(_GENERAL, 0, 0)
        places = (a.ctypes.data for a in (self.indptr, self.indptr[1:], self.indices, self.data))
        create, multiply = (getattr(mkl, f"mkl_sparse_{letter}_{name}") for name in ("create_csr", "mv"))
        status = create(ctypes.byref(handle), 0, *self.shape, *map(pointer, places))
        status = status or mkl.mkl_sparse_set_mv_hint(handle, _NON_TRANSPOSE, description, PRODUCTS)
        status = status or mkl.mkl_sparse_optimize(handle)
        if status:
            raise self.refused(f"status {status}")
        one, zero = value(1.0), value(0.0)

        def product(x: NDArray[Any], out: NDArray[Any]) -> None:
            ends = pointer(x.ctypes.data), zero, pointer(out.ctypes.data)
            if status := multiply(_NON_TRANSPOSE, one, handle, description, *ends):
                raise self.refused(f"status {status}")

        weakref.finalize(product, release, mkl.mkl_sparse_destroy, handle, self)
        return product


@cache
def _mkl() -> ctypes.CDLL:
    """Load MKL from where its distribution has it, or from the system."""
    try:
        parts = metadata.files(MKL.distribution) or []
    except metadata.PackageNotFoundError:
        parts = []
    found = [str(part.locate()) for part in parts if part.name.startswith("libmkl_rt.so")]
    try:
        mkl = ctypes.CDLL(found[0] if found else ctypes.util.find_library("mkl_rt") or "libmkl_rt.so")
    except OSError as error:
        raise MKL.missing(error) from error
    if "MKL_THREADING_LAYER" not in os.environ:
        # Threads of Intel's OpenMP stay awake for 0.2 s after a product, on the cores of whoever comes next.
        mkl.MKL_Set_Threading_Layer(_GNU_THREADS)
    return mkl
