"""PETSc's own product, MatMult of an MPIAIJ matrix: a peer of ours where petsc4py is installed.

It overlaps messages with the local part, has 1D partitions, CSR, and the one type that PETSc was built with.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparsecast.distributed.distributed_product import Step
from sparsecast.distributed.processes import in_step
from sparsecast.distributed.products import PRODUCTS
from sparsecast.distributed.products.local_1d import Local1D
from sparsecast.errors import FormatError, InputError
from sparsecast.formats.libraries import LIBRARIES
from sparsecast.formats.libraries.petsc import placed

#: PETSc does not tell its steps apart.
WHOLE = "whole"


@PRODUCTS.register("petsc")
class PETScProduct(Local1D):
    """MatMult of PETSc: the matrices, the exchange and the buffers are those of local 1D."""

    overlaps, is_default = True, False

    def _prepare(self) -> None:
        PETSc = in_step(self.comm, lambda: petsc(self.comm))
        in_step(self.comm, lambda: self._refuse_unsuited(PETSc))
        bounds, rank = self.part.partition, self.part.rank
        A = self.part.matrix
        rows = A.shape[0], bounds.shape[0]
        cols = int(np.diff(bounds.column_bounds)[rank]), bounds.shape[1]
        arrays = A.indptr.astype(PETSc.IntType), A.indices.astype(PETSc.IntType), A.data
        self._matrix = PETSc.Mat().createAIJ(size=(rows, cols), csr=arrays, comm=PETSc.COMM_WORLD)
        self._matrix.assemble()
        self._local = placed(self._matrix)

    @property
    def steps(self) -> Sequence[Step]:
        return [Step(WHOLE, self._local)]

    def _refuse_unsuited(self, PETSc: Any) -> None:
        scalar = np.dtype(PETSc.ScalarType).name
        if self.configuration.dtype != scalar:
            raise FormatError(f"petsc with {self.configuration.dtype}: expected {scalar}, its type; use that")
        formats = {self.configuration.format, self.configuration.remote_format}
        if formats != {"csr"}:
            raise FormatError(f"petsc in {', '.join(sorted(formats))}: expected csr, its MPIAIJ; use that")
        if max(self.part.partition.shape[1], self.part.matrix.nnz) > np.iinfo(PETSc.IntType).max:
            raise FormatError(
                f"petsc with {self.part.partition.shape[1]:,} columns or entries: expected fewer than its "
                f"integers count; use a PETSc with 64-bit indices"
            )


def petsc(comm: Any) -> Any:
    """Return PETSc, started; an InputError if it is missing or not on the MPI of these ranks.

    A build with another MPI than mpi4py loads would take the ranks for as many runs of one.
    """
    PETSc = LIBRARIES.get("petsc").loaded()
    if comm.size != PETSc.COMM_WORLD.size:
        raise InputError(
            f"petsc on {comm.size} ranks: expected {PETSc.COMM_WORLD.size}, all of its MPI; start them with "
            f"the mpirun of the library that PETSc was built with, and have mpi4py load that, too"
        )
    return PETSc
