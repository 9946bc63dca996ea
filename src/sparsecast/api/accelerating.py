"""Matrices, and solvers of pyamg, that other libraries take as they are and whose products are planned."""

from __future__ import annotations

import copy
import sys
import timeit
from typing import Any

import numpy as np
from scipy.sparse import issparse

from sparsecast.api.applications import PLANNING_S
from sparsecast.api.executing import in_csr
from sparsecast.api.sessions import session
from sparsecast.errors import InputError
from sparsecast.matrices.problem import Problem, sound
from sparsecast.operators.sparse_arrays import with_operator
from sparsecast.planning.adapting import SHORT_S

#: Products with a matrix that tell its time; the first one fetches it.
_TIMED = 3


def accelerate(A: Any, *, products: int = 1000, threads: int | None = None) -> Any:
    """Return a matrix, or a solver of pyamg, whose products with vectors are planned.

    It is still a sparse array, with the same arrays, for libraries that read these or check the type: SciPy's
    solvers and ``svds``, scikit-learn's ``TruncatedSVD``, pyamg. ``A @ x``, ``A.dot(X)`` and ``A.T @ y`` are
    done as `plan` says; the transpose is planned when it is first used. What is made of it, as by ``2 * A``,
    is plain SciPy again, and so are products whose result has another type than the matrix.

    Parameters
    ----------
    A : sparse array or matrix, or pyamg.MultilevelSolver
        Of floating-point or complex values; in CSR, CSC or BSR, else it is converted to CSR. The arrays are
        shared and must not change. Of a solver, which stays as it is, the matrices of all levels but the
        coarsest are planned. Smoothers that are compiled code of pyamg, such as Gauss-Seidel, stay.
    products : int
        Products to plan for, at least 1. Each matrix of a solver has about one in a cycle.
    threads : int, optional
        As in `plan`.

    Returns
    -------
    sparse array or matrix, or pyamg.MultilevelSolver
        Where all products take less than PLANNING_S seconds with SciPy, they are done in CSR on all threads:
        no plan would pay. A matrix with a product below SHORT_S comes back as it is. Otherwise what is built
        is held in memory, too.

    Raises
    ------
    InputError
        If `A` is neither, or its values are whole numbers; if `products` is below 1.
    ProfileError, DisturbedError
        As `plan`.
    """
    if products < 1:
        raise InputError(f"products {products}: expected at least 1; name how many you will do")
    if (pyamg := sys.modules.get("pyamg")) and isinstance(A, pyamg.MultilevelSolver):
        made = copy.copy(A)
        made.levels = [copy.copy(level) for level in A.levels]
        for level in made.levels[:-1]:  # the coarsest is solved by a factorization
            level.A, level.P, level.R = (
                accelerate(M, products=products, threads=threads) for M in (level.A, level.P, level.R)
            )
        return made
    is_sparse: bool = issparse(A)
    if not is_sparse or A.ndim != 2 or A.dtype.kind not in "fc":
        kind = f"{type(A).__name__} of {A.dtype}" if is_sparse else type(A).__name__
        raise InputError(
            f"a {kind}: expected a sparse array of real or complex values, or a pyamg.MultilevelSolver; "
            f"convert it"
        )
    A = sound(A)
    A = A.tocsr() if A.format == "coo" else A
    x = np.ones(A.shape[1], dtype=A.dtype)
    product_s = min(timeit.repeat(lambda: A @ x, number=1, repeat=_TIMED))
    if product_s < SHORT_S:
        return A
    if products * product_s >= PLANNING_S:
        operator = session(threads=threads).compile(A, products=products)
    else:
        operator = in_csr(Problem.of(A).matrix, threads)
    return with_operator(A, lambda: operator)
