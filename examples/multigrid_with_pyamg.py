"""Solves a rotated diffusion equation by pyamg: ``multigrid_with_pyamg.py [N] [SOLVES]``."""

import sys

import numpy as np
import pyamg


def main(n=300, solves=4):
    A = pyamg.gallery.stencil_grid(
        pyamg.gallery.diffusion_stencil_2d(epsilon=0.01, theta=0.5), (n, n)
    ).tocsr()
    smoother = ("chebyshev", {"degree": 4, "iterations": 2})
    hierarchy = pyamg.smoothed_aggregation_solver(A, presmoother=smoother, postsmoother=smoother)
    for seed in range(solves):
        b = np.random.default_rng(seed).normal(size=A.shape[0])
        x = hierarchy.solve(b, tol=1e-8, accel="cg")
        print(f"solved: |b - A x| = {np.linalg.norm(b - A @ x):.2e}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
