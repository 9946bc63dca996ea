"""Conjugate gradients, plain and with the diagonal as preconditioner, on any operator.

Hestenes and Stiefel (1952); step numbers as in Saad, Iterative Methods for Sparse Linear Systems (2003),
Algorithms 6.18 and 9.1. The vectors are as in `pagerank`.

The spectrum that the first iterations show forecasts how many there will be. k iterations give the values and
weights of k Lanczos steps: the Gauss quadrature of the eigenvalues, each weighted by its share of the
right-hand side (Golub and Meurant, Matrices, Moments and Quadrature, 2010). The share below a value is
interpolated between them, and is continued to one eigenvalue as a power, which Weyl's law has for discretised
operators. The method is then run on a diagonal matrix of that spectrum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh_tridiagonal
from scipy.sparse import csr_array

from sparsecast.errors import InputError
from sparsecast.operators.applications import APPLICATIONS
from sparsecast.operators.applications.application import (
    PRODUCT,
    Application,
    Iterations,
    Lap,
    Laps,
    OnIteration,
    VectorLoop,
    no_iteration,
    no_laps,
)
from sparsecast.operators.applications.defaults import TOLERANCE
from sparsecast.operators.block_operator import Operator
from sparsecast.system.texts import counted

Floats = NDArray[np.floating[Any]]

#: How far a value may be from its mirror image, in roundings (the epsilon of the type) of the largest value:
#: a matrix from assembly is symmetric but for the order of its sums. Storage of one half asks for equal bits.
ROUNDINGS = 100

#: Iterations with SciPy's product that forecast the number of all.
TRIALS = 40

#: The interval of their number is the number over the iterations that were done, to this power, on both
#: sides. `benchmarks/run.py iterations` shows what comes of it.
_DOUBT = 0.65

#: The least such factor: what another right-hand side may make of the number.
_ANOTHER_SIDE = 2


#: The greatest number of iterations, as in SciPy's cg.
_ITERATIONS_A_ROW = 10


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """The solution of A x = b.

    Attributes
    ----------
    x : float array of shape (rows,)
        Divided like the vectors of the operator.
    residuals : tuple of float
        Norm of b - A x after each iteration, by the recurrence, over that of b; the first is 1.
    stop : str
        ``"converged"``, ``"most iterations"``, or ``"breakdown"`` with the step and the reason.
    coefficients : tuple of (float, float)
        Alpha and beta of each step, which give Lanczos' matrix (Saad 2003, section 6.7.3).
    state : (r, p, rho), or None
        What the next step would need.
    """

    x: Any
    iterations: int
    residuals: tuple[float, ...]
    stop: str
    coefficients: tuple[tuple[float, float], ...] = ()
    state: tuple[Any, Any, float] | None = None


@APPLICATIONS.register("cg")
class ConjugateGradients(Application):
    """Conjugate gradients for A x = b, with a symmetric and positive definite A."""

    name = "cg"
    settings = ("tolerance", "preconditioner")
    trials = TRIALS

    def __init__(
        self, A: csr_array[Any], tolerance: float = TOLERANCE, preconditioner: str | None = None
    ) -> None:
        refuse_settings(tolerance, 1)
        # The matrix has to be square, real, finite, and symmetric up to ROUNDINGS.
        if A.shape[0] != A.shape[1]:
            raise InputError(
                f"conjugate gradients with {A.shape[0]:,} rows and {A.shape[1]:,} columns: expected a square "
                f"matrix; solve the normal equations"
            )
        if A.dtype.kind == "c":
            raise InputError(
                "conjugate gradients with complex values: expected real ones; name another matrix"
            )
        if not np.isfinite(A.data).all():
            raise InputError(
                "conjugate gradients with values that are NaN or infinite: expected finite ones; correct them"
            )
        difference, largest = (abs(part).max() if part.nnz else 0.0 for part in (A - csr_array(A.T), A))
        if difference > ROUNDINGS * np.finfo(A.dtype).eps * largest:
            raise InputError(
                f"conjugate gradients with a matrix that is not symmetric: expected equal values on both "
                f"sides of the diagonal, found a difference of {difference / largest:.2g} of the largest; "
                f"use bicg or gmres of SciPy with sc.compile(A)"
            )
        self.matrix, self.tolerance = A, tolerance
        self.inverse_diagonal = None if preconditioner is None else _inverse_diagonal(A, preconditioner)
        self.vectors = 4 if preconditioner is None else 6  # x, r, p and q; with z and the diagonal
        self.loops = (
            VectorLoop("start", 10 if preconditioner is None else 13, is_once=True),
            VectorLoop("curvature", 2),
            VectorLoop("step", 6),
            *([] if preconditioner is None else [VectorLoop("precondition", 4)]),
            VectorLoop("direction", 3),
        )
        self.most_iterations = _ITERATIONS_A_ROW * A.shape[0]

    def told(self, done: Solution) -> Iterations:
        """Return the iterations; an InputError where the first ones broke down."""
        rows, tried = int(self.matrix.shape[0]), done.iterations
        if done.stop == "converged":
            why = f"A random right-hand side takes {counted(tried, 'iteration')}."
            low, high = max(1, tried // _ANOTHER_SIDE), _ANOTHER_SIDE * tried
            return Iterations(tried, low, high, why, tried)
        if done.stop != "most iterations":
            raise InputError(
                f"conjugate gradients: {done.stop}: expected a positive definite matrix; name another"
            )
        expected = expected_iterations(done.coefficients, done.residuals, rows, self.tolerance)
        most = max(self.most_iterations, tried + 1)
        expected = min(expected, most)
        factor = max((expected / tried) ** _DOUBT, _ANOTHER_SIDE)
        low, high = max(tried + 1, int(expected / factor)), min(math.ceil(expected * factor), most)
        why = (
            f"{tried} iterations were done, which tell a spectrum by Lanczos' method: its least eigenvalues "
            f"are a guess."
        )
        return Iterations(expected, low, high, why, tried)

    def run(self, op: Operator, most: int, on_iteration: OnIteration, laps: Laps) -> Solution:
        # The b of forecasts and of their checks: random, so that no matrix finds it easy.
        b, generator = op.range.host_zeros(), np.random.default_rng(0)
        for array in op.range.arrays(b):
            array[:] = generator.standard_normal(array.size)
        laps.start()  # not before b, which is no part of the run
        return self.solved(op, b, most, on_iteration=on_iteration, lap=laps)

    def solved(self, op: Operator, b: Any, most: int | None, **asked: Any) -> Solution:
        """Return the solution; what is `asked` is as in `conjugate_gradients`."""
        asked |= {"tolerance": self.tolerance, "most": most}
        return conjugate_gradients(op, b, self.inverse_diagonal, **asked)


def conjugate_gradients(
    op: Operator,
    b: Any,
    inverse_diagonal: Any = None,
    *,
    tolerance: float = TOLERANCE,
    most: int | None = None,
    on_iteration: OnIteration = no_iteration,
    lap: Lap = no_laps,
    start: Solution | None = None,
) -> Solution:
    """Solve A x = b from x = 0.

    Parameters
    ----------
    op : Operator
        Real, symmetric and positive definite; otherwise the result is a breakdown.
    b : float array of shape (rows,)
        Or another vector of the operator's space, such as this process's part of it.
    inverse_diagonal : float array of shape (rows,), or None
        One over the diagonal of A, a vector as `b`: Jacobi's preconditioner.
    tolerance : float
        Residual over the norm of b at the end.
    most : int, optional
        Greatest number of iterations; by default ten per row.
    on_iteration : callable
        Called after each with its number and the relative residual.
    lap : callable
        Called at the end of each loop, with its name.
    start : Solution, optional
        A run for the same b that ended too soon, such as one with another operator: it is gone on with.
    """
    most = _ITERATIONS_A_ROW * op.shape[0] if most is None else most
    refuse_settings(tolerance, most)
    from sparsecast.operators.applications.vector_loops import Loops, copy, dot, precondition, step, turn

    space = op.domain
    over = Loops(space)
    x, q, r, p = (space.host_zeros() for _ in range(4))
    over.run(copy, b, r)  # 1: r0 = b, x0 = 0
    norm_b = math.sqrt(over.total(dot, r, r))
    z, rho = r, norm_b * norm_b
    if inverse_diagonal is not None:
        z = space.host_zeros()
        rho = over.total(precondition, r, inverse_diagonal, z)
    over.run(copy, z, p)  # 1: p0 = z0
    if not math.isfinite(norm_b):
        raise InputError("b has values that are NaN or infinite: expected finite ones; correct b")
    residuals, steps = [1.0 if norm_b else 0.0], list[tuple[float, float]]()
    if start is not None and start.state is not None:
        for kept, vector in zip((start.x, *start.state[:2]), (x, r, p), strict=True):
            over.run(copy, kept, vector)
        rho, residuals, steps = start.state[2], list(start.residuals), list(start.coefficients)
    lap("start")
    stop = "converged"
    while residuals[-1] > tolerance:
        number = len(residuals)
        if number > most:
            stop = "most iterations"
            break
        op.matvec(p, out=q)
        lap(PRODUCT)
        curvature = over.total(dot, p, q)
        lap("curvature")
        if not (0 < curvature < math.inf and 0 < rho < math.inf):
            stop = _breakdown(number, curvature, rho)
            break
        alpha = rho / curvature  # 3
        squares = over.total(step, alpha, p, q, x, r)  # 4 and 5
        lap("step")
        last, rho = rho, squares
        if inverse_diagonal is not None:
            rho = over.total(precondition, r, inverse_diagonal, z)
            lap("precondition")
        over.run(turn, rho / last, z, p)  # 6 and 7
        lap("direction")
        steps.append((alpha, rho / last))
        residuals.append(math.sqrt(squares) / norm_b)
        on_iteration(number, residuals[-1])
    return Solution(x, len(residuals) - 1, tuple(residuals), stop, tuple(steps), (r, p, rho))


def _breakdown(number: int, curvature: float, rho: float) -> str:
    if not (math.isfinite(curvature) and math.isfinite(rho)):
        return f"breakdown in step {number}: values overflow or are not finite"
    if not rho > 0:
        return f"breakdown in step {number}: the preconditioner is not positive definite (r z is {rho:.3g})"
    return f"breakdown in step {number}: the matrix is not positive definite (p A p is {curvature:.3g})"


def refuse_settings(tolerance: float, most: int) -> None:
    """Raise an InputError for impossible settings."""
    if not 0 < tolerance < 1:
        raise InputError(
            f"tolerance {tolerance:g}: expected a number between 0 and 1; usual is {TOLERANCE:g}"
        )
    if most < 1:
        raise InputError(f"{most} iterations at most: expected at least 1; allow some")


def _inverse_diagonal(A: csr_array[Any], preconditioner: str) -> Floats:
    """Return one over the diagonal; raise an InputError unless all of it is above 0."""
    if preconditioner != "jacobi":
        raise InputError(f"preconditioner '{preconditioner}': expected jacobi, or none; name that")
    diagonal = A.diagonal()
    if not (diagonal > 0).all():
        row = int(np.flatnonzero(~(diagonal > 0))[0])
        raise InputError(
            f"the diagonal has {diagonal[row]:g} in row {row:,}: expected values above 0 for jacobi; leave "
            f"the preconditioner out"
        )
    return np.asarray(1 / diagonal)


#: Lanczos steps whose values are found: it takes time that grows with their square.
_STEPS = 1000

#: Eigenvalues of the diagonal matrix, of which the least ones are all there.
_EIGENVALUES, _LEAST_ONES = 4000, 300

#: Lowest values that tell the power, its bounds, and how far below the least value it is followed.
_LOWEST, _POWERS, _BEYOND = 12, (0.2, 3.0), 20.0

#: A value has settled when its error is less than this share of it.
_SETTLED = 0.01

#: Iterations on the diagonal matrix, after which the residual goes on to shrink as before.
_MOST = 20_000


def lanczos_values(coefficients: Sequence[tuple[float, float]]) -> tuple[Floats, Floats, Floats]:
    """Return the values of Lanczos' matrix, ascending, their weights, and their errors.

    `coefficients` are the alpha and beta of each step of conjugate gradients.
    """
    alpha, beta = np.array(coefficients).T
    diagonal = 1 / alpha
    diagonal[1:] += beta[:-1] / alpha[:-1]
    off_diagonal = np.sqrt(beta) / alpha
    values, vectors = eigh_tridiagonal(diagonal, off_diagonal[:-1])
    return values, vectors[0] ** 2, np.abs(off_diagonal[-1] * vectors[-1])


def expected_iterations(
    coefficients: Sequence[tuple[float, float]], residuals: Sequence[float], rows: int, tolerance: float
) -> int:
    """Return after how many iterations the relative residual is expected to be `tolerance`.

    `coefficients` are those of the iterations that were done; `residuals` are relative, before the first and
    after each of them.
    """
    if rows < 2 or len(coefficients) < 3:
        return len(coefficients) + 1
    eigenvalues, weights = _spectrum(*lanczos_values(coefficients[:_STEPS]), rows)
    modelled = np.minimum.accumulate(_residuals(eigenvalues, weights, tolerance))
    reached = int(np.argmax(modelled <= min(residuals)))
    ahead = len(modelled) - 1
    if modelled[-1] > tolerance:
        ahead = math.ceil(ahead * math.log(tolerance) / min(math.log(modelled[-1]), -1e-9))
    return len(coefficients) + max(1, ahead - reached)


def _spectrum(values: Floats, weights: Floats, errors: Floats, rows: int) -> tuple[Floats, Floats]:
    """Return eigenvalues of a matrix of `rows` rows, and their weights."""
    heavy = weights > np.finfo(float).eps
    values, weights, errors = values[heavy], weights[heavy], errors[heavy]
    # A settled value is an eigenvalue: its weight is at its place, and that of others is around it.
    halves = np.where(errors < _SETTLED * values, weights / 2, 0.0)
    below = np.cumsum(weights) - weights / 2
    shares = np.log(np.maximum(np.column_stack([below - halves, below + halves]).ravel(), 1e-300))
    places = np.repeat(np.log(values), 2)
    ranks = 1.0 + np.arange(rows)
    if rows > _EIGENVALUES:
        others = np.linspace(_LEAST_ONES, rows - 1, _EIGENVALUES - _LEAST_ONES).astype(int)
        ranks = np.r_[ranks[:_LEAST_ONES], 1.0 + others]
    wanted = np.log(ranks / rows)
    found = np.interp(wanted, shares, places)
    is_below = wanted < shares[0]
    if is_below.any():
        power = np.polyfit(places[:_LOWEST:2], shares[:_LOWEST:2], 1)[0]
        down = (wanted[is_below] - shares[0]) / np.clip(power, *_POWERS)
        found[is_below] = places[0] + np.maximum(down, -math.log(_BEYOND))
    lower = np.log(values) < found[0]
    borders = np.r_[0.0, (ranks[1:] + ranks[:-1]) / 2, rows]
    return np.exp(np.r_[np.log(values[lower]), found]), np.r_[weights[lower], np.diff(borders) / rows]


def _residuals(eigenvalues: Floats, weights: Floats, tolerance: float) -> Floats:
    """Return the relative residuals of conjugate gradients on a diagonal matrix, until `tolerance`."""
    r = np.sqrt(weights / weights.sum())
    p, rho, found = r.copy(), 1.0, [1.0]
    while found[-1] > tolerance and len(found) <= _MOST:
        q = eigenvalues * p
        r -= rho / (p @ q) * q
        last, rho = rho, float(r @ r)
        p *= rho / last
        p += r
        found.append(math.sqrt(rho))
    return np.array(found)
