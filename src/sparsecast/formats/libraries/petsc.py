"""PETSc: MatMult of a sequential AIJ matrix, on one thread, in the type that PETSc was built with."""

from __future__ import annotations

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
    #: One thread does all rows, so none waits for the longest.
    divides_rows: ClassVar[bool] = True

    def product(self) -> Product:
        petsc = loaded()
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


def loaded() -> Any:
    """Return PETSc, started.

    Raises
    ------
    MissingLibraryError
        If it is not installed, or was built for another NumPy.
    """
    try:
        import petsc4py

        petsc4py.init([])
        from petsc4py import PETSc as module  # noqa: N813 - PETSc is ours here
    except ModuleNotFoundError as error:
        raise PETSc.missing("petsc4py is not installed") from error
    except (ImportError, ValueError) as error:
        raise PETSc.missing(f"petsc4py cannot be loaded ({error})") from error
    return module
