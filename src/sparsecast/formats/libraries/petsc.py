"""PETSc: MatMult of a sequential AIJ matrix, on one thread, in the type that PETSc was built with."""

from __future__ import annotations

import importlib
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sparsecast.formats.libraries import LIBRARIES
from sparsecast.formats.libraries.library import Library
from sparsecast.operators.block_operator import Product
from sparsecast.records import DTYPES


@LIBRARIES.register("petsc")
class PETSc(Library):
    name: ClassVar[str] = "petsc"
    title: ClassVar[str] = "PETSc"
    kernel: ClassVar[str] = "MatMult"
    distribution: ClassVar[str] = "petsc4py"
    remedy: ClassVar[str] = "install petsc and petsc4py from source"
    dtypes: ClassVar[tuple[str, ...]] = DTYPES
    is_serial: ClassVar[bool] = True

    @classmethod
    def load(cls) -> Any:
        """Return PETSc, started; an ImportError or ValueError says that it was built for another NumPy."""
        petsc4py = importlib.import_module("petsc4py")
        petsc4py.init([])
        return importlib.import_module("petsc4py.PETSc")

    def product(self) -> Product:
        petsc = self.loaded()
        scalar = np.dtype(petsc.ScalarType)
        if self.dtype != scalar:
            raise self.refused(f"{self.dtype} values, it was built for {scalar}")
        arrays = self.indptr.astype(petsc.IntType), self.indices.astype(petsc.IntType), self.data
        size = tuple((each, each) for each in self.shape)  # of this process, and of all
        matrix = petsc.Mat().createAIJ(size=size, csr=arrays, comm=petsc.COMM_SELF)
        matrix.assemble()
        return placed(matrix)


def placed(matrix: Any) -> Product:
    """Return the product of a PETSc matrix with arrays that are its vectors meanwhile."""
    given, taken = matrix.createVecs()

    def product(x: NDArray[Any], out: NDArray[Any]) -> None:
        given.placeArray(x)
        taken.placeArray(out)
        matrix.mult(given, taken)
        given.resetArray()
        taken.resetArray()

    return product
