"""Solves the Poisson equation on a cube by SciPy's conjugate gradients: ``cg_with_scipy.py [N] [SOLVES]``."""

import sys

import numpy as np
from scipy.sparse import diags_array, eye_array, kron
from scipy.sparse.linalg import cg


def poisson(n):
    """Return the matrix of the seven-point stencil on n^3 points."""
    line = diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(n, n))
    one = eye_array(n)
    return (kron(kron(line, one), one) + kron(kron(one, line), one) + kron(kron(one, one), line)).tocsr()


def main(n=60, solves=8):
    A = poisson(n)
    for seed in range(solves):
        b = np.random.default_rng(seed).normal(size=A.shape[0])
        x, failed = cg(A, b, rtol=1e-8)
        print(f"{'not ' if failed else ''}solved: |b - A x| = {np.linalg.norm(b - A @ x):.2e}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
