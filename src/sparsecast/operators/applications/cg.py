"""Conjugate gradients, plain and with the diagonal as preconditioner, on any operator.

Hestenes and Stiefel (1952); step numbers as in Saad, Iterative Methods for Sparse Linear Systems (2003),
Algorithms 6.18 and 9.1. The vectors are as in `pagerank`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.errors import InputError
from sparsecast.operators.applications.defaults import TOLERANCE
from sparsecast.operators.applications.laps import PRODUCT, Lap, VectorLoop, no_laps
from sparsecast.operators.block_operator import Operator

Floats = NDArray[np.floating[Any]]


def loops(is_preconditioned: bool) -> tuple[VectorLoop, ...]:
    """Return the loops over vectors, an entry each."""
    return (
        VectorLoop("start", 13 if is_preconditioned else 10, is_once=True),
        VectorLoop("curvature", 2),
        VectorLoop("step", 6),
        *([VectorLoop("precondition", 4)] if is_preconditioned else []),
        VectorLoop("direction", 3),
    )


def most_iterations(rows: int) -> int:
    """Return the iterations after which it ends in any case, as SciPy's cg does: ten for each row."""
    return 10 * rows


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """What came of it.

    Attributes
    ----------
    x : float array
    iterations : int
    residuals : tuple of float
        Norm of b - A x after each iteration, as the recurrence has it, over that of b; the first is 1.
    stop : str
        Why it ended: ``"converged"``, ``"most iterations"``, or ``"breakdown"`` with the step and the reason.
    coefficients : tuple of (float, float)
        Alpha and beta of each step: they tell what the matrix does to the directions that were met (Saad
        2003, section 6.7.3).
    """

    x: Floats
    iterations: int
    residuals: tuple[float, ...]
    stop: str
    coefficients: tuple[tuple[float, float], ...] = ()


def conjugate_gradients(
    op: Operator,
    b: Floats,
    inverse_diagonal: Floats | None = None,
    *,
    tolerance: float = TOLERANCE,
    most: int | None = None,
    on_iteration: Callable[[int, float], object] = lambda iteration, residual: None,
    lap: Lap = no_laps,
) -> Solution:
    """Solve A x = b from x = 0.

    Parameters
    ----------
    op : Operator
        Real, symmetric and positive definite. What is not shows as a breakdown.
    b : float array
        This process's part.
    inverse_diagonal : float array, or None
        One over the diagonal of A: Jacobi's preconditioner.
    tolerance : float
        The iteration ends when the residual is at most this share of the norm of b.
    most : int, optional
        Iterations after which it ends in any case; ten for each row by default.
    on_iteration : callable
        Called after each with its number and the relative residual.
    lap : callable
        Called at the end of each loop, with its name.

    Raises
    ------
    InputError
        If `tolerance` or `most` cannot be, or b is not finite.
    """
    most = most_iterations(op.shape[0]) if most is None else most
    refuse_settings(tolerance, most)
    from sparsecast.operators.applications.vector_loops import dot, precondition, step, turn

    space = op.domain
    x, q = np.zeros((2, space.size), dtype=op.dtype)  # not the space's zeros, which may lie on a GPU
    r = np.array(b, dtype=q.dtype)  # 1: r0 = b, x0 = 0
    norm_b = math.sqrt(space.total(dot(r, r)))
    z, rho = r, norm_b * norm_b
    if inverse_diagonal is not None:
        z = np.empty_like(r)
        rho = space.total(precondition(r, inverse_diagonal, z))
    p = z.copy()  # 1: p0 = z0
    if not math.isfinite(norm_b):
        raise InputError("b has values that are NaN or infinite: expected finite ones; correct b")
    lap("start")
    residuals, steps = [1.0 if norm_b else 0.0], []
    stop = "converged"
    while residuals[-1] > tolerance:
        number = len(residuals)
        if number > most:
            stop = "most iterations"
            break
        op.matvec(p, out=q)
        lap(PRODUCT)
        curvature = space.total(dot(p, q))
        lap("curvature")
        if not (0 < curvature < math.inf and 0 < rho < math.inf):
            stop = _breakdown(number, curvature, rho)
            break
        alpha = rho / curvature  # 3
        squares = space.total(step(alpha, p, q, x, r))  # 4 and 5
        lap("step")
        last, rho = rho, squares
        if inverse_diagonal is not None:
            rho = space.total(precondition(r, inverse_diagonal, z))
            lap("precondition")
        turn(z, rho / last, p)  # 6 and 7
        lap("direction")
        steps.append((alpha, rho / last))
        residuals.append(math.sqrt(squares) / norm_b)
        on_iteration(number, residuals[-1])
    return Solution(x, len(residuals) - 1, tuple(residuals), stop, tuple(steps))


def _breakdown(number: int, curvature: float, rho: float) -> str:
    if not (math.isfinite(curvature) and math.isfinite(rho)):
        return f"breakdown in step {number}: values overflow or are not finite"
    if not rho > 0:
        return f"breakdown in step {number}: the preconditioner is not positive definite (r z is {rho:.3g})"
    return f"breakdown in step {number}: the matrix is not positive definite (p A p is {curvature:.3g})"


def refuse_settings(tolerance: float, most: int) -> None:
    """Raise an InputError for settings with which no iteration would make sense."""
    if not 0 < tolerance < 1:
        raise InputError(
            f"tolerance {tolerance:g}: expected a number between 0 and 1; usual is {TOLERANCE:g}"
        )
    if most < 1:
        raise InputError(f"{most} iterations at most: expected at least 1; allow some")
