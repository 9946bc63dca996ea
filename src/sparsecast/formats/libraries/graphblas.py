"""SuiteSparse:GraphBLAS: the product as LAGraph's PageRank does it, added to a full vector of zeros."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sparsecast.features.structure import Structure
from sparsecast.formats.libraries import LIBRARIES
from sparsecast.formats.libraries.library import GNU_LINGER_S, Library
from sparsecast.formats.narrowing import VALUES
from sparsecast.operators.block_operator import Product

#: The version that has indices of 32 bits.
_LEAST_VERSION = 10

#: The entries, of the matrix and of x, that there are for each thread at least: GxB_CHUNK, if nobody sets it.
_CHUNK = 2**16

_TYPES = {"float64": ("FP64", "double[]"), "float32": ("FP32", "float[]")}


@LIBRARIES.register("graphblas")
class GraphBLAS(Library):
    """A GrB_Matrix with indices of 32 bits; with values that are one, it is iso-valued.

    It reads x where it lies; y is copied from its own vector into the array that is given. Threads take turns
    at parts of the rows with as many entries each.
    """

    name: ClassVar[str] = "graphblas"
    title: ClassVar[str] = "SuiteSparse:GraphBLAS"
    kernel: ClassVar[str] = "mxv"
    distribution: ClassVar[str] = "suitesparse-graphblas"
    remedy: ClassVar[str] = "pip install 'suitesparse-graphblas>=10'"
    linger_s: ClassVar[float] = GNU_LINGER_S
    call_version: ClassVar[int] = 1
    narrow_parameters: ClassVar[Mapping[str, tuple[Any, ...]]] = {"values": VALUES[:1]}

    @classmethod
    def version(cls) -> str | None:
        found = super().version()
        return found if found and int(found.partition(".")[0]) >= _LEAST_VERSION else None

    @classmethod
    def threads_used(cls, matrix: Structure, threads: int) -> int:
        return min(max(1, (matrix.nnz + matrix.cols) // _CHUNK), threads)

    @classmethod
    def load(cls) -> Any:
        """Return SuiteSparse:GraphBLAS and what makes its arguments."""
        binding = importlib.import_module("suitesparse_graphblas")
        if not binding.is_initialized():
            binding.initialize(blocking=True)
        return binding.lib, binding.ffi

    @classmethod
    def use_threads(cls, threads: int) -> None:
        lib, _ = cls.loaded()
        lib.GxB_Global_Option_set_INT32(lib.GxB_GLOBAL_NTHREADS, threads)

    def product(self) -> Product:
        lib, ffi = self.loaded()
        suffix, values = _TYPES[self.dtype.name]
        kind = getattr(lib, f"GrB_{suffix}")
        (rows, cols), null = self.shape, ffi.NULL

        def of_type(name: str) -> Any:
            return getattr(lib, f"{name}_{suffix}")

        matrix = ffi.gc(ffi.new("GrB_Matrix*"), lib.GrB_Matrix_free)
        places = self.indptr.astype(np.uint64), self.indices.astype(np.uint64)
        arrays = (
            *(ffi.from_buffer("GrB_Index[]", part) for part in places),
            ffi.from_buffer(values, np.full(self.nnz, self.data[0]) if self.values else self.data),
        )
        sizes = rows + 1, self.nnz, self.nnz
        status = [of_type("GrB_Matrix_import")(matrix, kind, rows, cols, *arrays, *sizes, lib.GrB_CSR_FORMAT)]
        for hint in ("ROWINDEX", "COLINDEX", "OFFSET"):
            status.append(lib.GrB_Matrix_set_INT32(matrix[0], 32, getattr(lib, f"GxB_{hint}_INTEGER_HINT")))
        if self.values:
            where = lib.GrB_ALL, rows, lib.GrB_ALL, cols, lib.GrB_DESC_S
            status.append(of_type("GrB_Matrix_assign")(matrix[0], matrix[0], null, self.data[0], *where))
        status.append(lib.GrB_Matrix_wait(matrix[0], lib.GrB_MATERIALIZE))
        vector, result = (ffi.gc(ffi.new("GrB_Vector*"), lib.GrB_Vector_free) for _ in range(2))
        status += [lib.GrB_Vector_new(vector, kind, cols), lib.GrB_Vector_new(result, kind, rows)]
        if any(status):
            raise self.refused(f"status {next(filter(None, status))}")
        # Where all values are 1, nothing is multiplied.
        is_sum = self.values and self.data[0] == 1.0
        semiring = of_type("GxB_PLUS_SECOND") if is_sum else of_type("GrB_PLUS_TIMES_SEMIRING")
        plus, zeros, extract = (
            of_type("GrB_PLUS"),
            of_type("GrB_Vector_assign"),
            of_type("GrB_Vector_extractTuples"),
        )
        load, readonly = lib.GxB_Vector_load, lib.GxB_IS_READONLY
        place, count = ffi.new("void**"), ffi.new("GrB_Index*")

        def product(x: NDArray[Any], out: NDArray[Any]) -> None:
            place[0], count[0] = ffi.from_buffer(values, x), rows
            status = load(vector[0], place, kind, cols, x.nbytes, readonly, null)
            status = status or zeros(result[0], null, null, 0.0, lib.GrB_ALL, rows, null)
            status = status or lib.GrB_mxv(result[0], null, plus, semiring, matrix[0], vector[0], null)
            if status := status or extract(null, ffi.from_buffer(values, out), count, result[0]):
                raise self.refused(f"status {status}")

        return product
