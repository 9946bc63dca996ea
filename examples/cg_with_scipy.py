"""Solves the Poisson equation on a cube by SciPy's conjugate gradients: ``cg_with_scipy.py [N] [SOLVES]``."""

import sys

import numpy as np
from scipy.sparse import diags_array, eye_array, kron
from scipy.sparse.linalg import cg


def poisson(n):
    """Return the matrix of a stencil of 27 points on n^3 points."""
    near = diags_array([1.0, 1.0, 1.0], offsets=[-1, 0, 1], shape=(n, n))
    return (27.0 * eye_array(n**3) - kron(kron(near, near), near)).tocsr()


def main(n=50, solves=8):
    A = poisson(n)
    for seed in range(solves):
        b = np.random.default_rng(seed).normal(size=A.shape[0])
        x, failed = cg(A, b, rtol=1e-8)
        print(f"{'not ' if failed else ''}solved: |b - A x| = {np.linalg.norm(b - A @ x):.2e}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
