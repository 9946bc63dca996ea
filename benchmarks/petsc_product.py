"""PETSc's MatMult of the 5-point mesh, timed as `distributed_products.py` times ours.

    mpirun -n 2 python3 benchmarks/petsc_product.py N [ROUNDS]

It imports petsc4py and NumPy alone, because petsc4py of a distribution is made for that one's Python, NumPy
and MPI, which need not be ours. The matrix is ``gallery:poisson2d?n=N``; PETSc cuts the rows into equal
numbers, too.
"""

from __future__ import annotations

import sys
from time import perf_counter

import numpy as np
import petsc4py

petsc4py.init([])

from petsc4py import PETSc  # noqa: E402 - after init


def rows_of_mesh(n: int, first: int, end: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the CSR arrays of some rows: 4 on the diagonal, -1 for each neighbour."""
    nodes = np.arange(first, end)
    column, offsets = nodes % n, np.array([-n, -1, 0, 1, n])
    columns = nodes[:, None] + offsets
    is_there = np.stack(
        [nodes >= n, column > 0, np.ones(len(nodes), bool), column < n - 1, nodes < n * (n - 1)], axis=1
    )
    values = np.broadcast_to(np.where(offsets == 0, 4.0, -1.0), columns.shape)
    indptr = np.concatenate(([0], np.cumsum(is_there.sum(axis=1))))
    return indptr.astype(PETSc.IntType), columns[is_there].astype(PETSc.IntType), values[is_there]


def main() -> None:
    """Measure, and print from rank 0."""
    n, rounds = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 60
    comm = PETSc.COMM_WORLD
    ranks, rank = comm.getSize(), comm.getRank()
    size = n * n
    first, end = size * rank // ranks, size * (rank + 1) // ranks
    A = PETSc.Mat().createAIJ(
        ((end - first, size), (end - first, size)), csr=rows_of_mesh(n, first, end), comm=comm
    )
    x, y = A.createVecRight(), A.createVecLeft()
    x.set(1.0)
    times = []
    for _ in range(rounds):
        A.mult(x, y)
        comm.barrier()
        start = perf_counter()
        A.mult(x, y)
        times.append(perf_counter() - start)
    # The largest of each round: PETSc has no maximum of arrays over ranks but that of vectors.
    own = PETSc.Vec().createMPI((rounds, rounds * ranks), comm=comm)
    own.setArray(np.array(times))
    scatter, everyone = PETSc.Scatter.toZero(own)
    scatter.scatter(own, everyone, False, PETSc.Scatter.Mode.FORWARD)
    if rank == 0:
        slowest = everyone.getArray().reshape(ranks, rounds).max(axis=0)
        low, median = np.quantile(slowest, 0.1), np.median(slowest)
        print(
            f"gallery:poisson2d?n={n} {ranks} ranks  petsc {low * 1e3:8.3f} ms  median {median * 1e3:8.3f} ms"
        )


if __name__ == "__main__":
    main()
