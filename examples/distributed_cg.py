"""Conjugate gradients on many ranks: a solver of one process, whose vectors lie in parts.

    mpirun -n 4 python examples/distributed_cg.py [MATRIX]

MATRIX is symmetric and positive definite: a file, or `gallery:NAME?key=value`. The right-hand side is that of
a solution of ones.
"""

from __future__ import annotations

import sys

import numpy as np

from sparsecast import distributed
from sparsecast.records import Configuration


def conjugate_gradients(
    op: distributed.DistributedOperator, b: np.ndarray, tolerance: float = 1e-8, most: int = 10_000
) -> tuple[np.ndarray, int]:
    """Solve A x = b as Hestenes and Stiefel (1952) do; return this rank's part of x, and the iterations."""
    space = op.domain
    x, r, p = space.zeros(), b, b
    rho = space.dot(r, r)
    enough = tolerance**2 * rho
    for iteration in range(most):
        if rho <= enough:
            return x, iteration
        q = op @ p
        alpha = rho / space.dot(p, q)
        x, r = x + alpha * p, r - alpha * q
        rho, last = space.dot(r, r), rho
        p = r + (rho / last) * p
    return x, most


def main() -> None:
    """Solve on all ranks; rank 0 says what came of it."""
    comm = distributed.world()
    with distributed.together(comm):  # if one rank fails, all end
        name = sys.argv[1] if len(sys.argv) > 1 else "gallery:poisson2d?n=300"
        configuration = Configuration("local-1d-overlap", "csr", "csr", "rows", comm.size, nodes=1)
        op = distributed.compile(name, configuration, comm)
        b = op @ np.ones_like(op.domain.zeros())
        x, iterations = conjugate_gradients(op, b)
        residual = op.domain.norm(b - op @ x) / op.domain.norm(b)
        if comm.rank == 0:
            print(
                f"{op.shape[0]:,} rows on {comm.size} ranks: {iterations} iterations, "
                f"relative residual {residual:.1e}"
            )


if __name__ == "__main__":
    main()
