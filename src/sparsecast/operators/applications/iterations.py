"""How many iterations an application will take: some are done before it starts, and tell the others."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh_tridiagonal
from scipy.sparse import csr_array

from sparsecast.errors import InputError
from sparsecast.operators.applications import cg, pagerank
from sparsecast.operators.applications.graphs import Links
from sparsecast.operators.block_operator import LocalSpace, VectorSpace

Floats = NDArray[np.floating[Any]]

#: Iterations that are done with SciPy's product to tell the number of all.
PAGERANK_TRIALS, CG_TRIALS = 8, 40


@dataclass(frozen=True, slots=True)
class Iterations:
    """A number of iterations that nobody knows yet. Fewer than `low` are rare, but possible.

    Attributes
    ----------
    expected, low, high : int
    why : str
        What they come from, in a sentence.
    tried : int
        Iterations that were done to tell.
    """

    expected: int
    low: int
    high: int
    why: str
    tried: int = 0

    @classmethod
    def known(cls, number: int) -> Iterations:
        """Return a number that the user gives."""
        if number < 1:
            raise InputError(f"iterations {number}: expected at least 1; name those that will be done")
        return cls(number, number, number, "The number of iterations is given.")


class _ScipyOperator:
    """A matrix with SciPy's product: it needs no format and no compiling."""

    def __init__(self, matrix: csr_array[Any]) -> None:
        self.matrix, self.shape, self.dtype = matrix, matrix.shape, matrix.dtype

    @property
    def domain(self) -> VectorSpace:
        return LocalSpace(self.shape[1], self.dtype)

    range = domain

    def matvec(self, x: Any, out: Any = None) -> Any:
        out[:] = self.matrix @ x
        return out


def of_pagerank(graph: Links, damping: float, epsilon: float) -> Iterations:
    """Return the iterations of PageRank: some are done, the others follow from how the change shrinks.

    The change shrinks by the damping factor at least in each iteration, which gives the most. It hardly ever
    shrinks faster later than it does after some, which gives the fewest (Haveliwala and Kamvar 2003).
    """
    op = _ScipyOperator(graph.matrix)
    done = pagerank.pagerank(
        op, graph.dangling, graph.inverse_weight, damping=damping, epsilon=epsilon, most=PAGERANK_TRIALS
    )
    tried, change = done.iterations, done.residuals[-1]
    if done.stop == "converged":
        counted = "1 iteration" if tried == 1 else f"{tried} iterations"
        return Iterations(tried, tried, tried, f"PageRank converges in {counted}.", tried)
    rate = min(damping, change / done.residuals[-2])
    left = math.log(epsilon / change)
    high = math.ceil(left / math.log(damping))
    low = math.ceil(left / math.log(rate)) if rate > 0 else 1
    why = (
        f"{tried} iterations were tried: each now divides the change by {1 / rate:.2f}, and by "
        f"{1 / damping:.2f} at least, the damping factor."
    )
    return Iterations(tried + round(math.sqrt(low * high)), tried + low, tried + high, why, tried)


def of_cg(A: csr_array[Any], inverse_diagonal: Floats | None, tolerance: float) -> Iterations:
    """Return the iterations of conjugate gradients: some are done for a random right-hand side.

    Their coefficients are those of Lanczos' method, whose values tell the condition number kappa. The error
    shrinks as 2 ((sqrt(kappa) - 1) / (sqrt(kappa) + 1))^k (Saad 2003, equation 6.128).
    """
    op = _ScipyOperator(A)
    b = np.random.default_rng(0).standard_normal(A.shape[0]).astype(A.dtype)
    done = cg.conjugate_gradients(op, b, inverse_diagonal, tolerance=tolerance, most=CG_TRIALS)
    tried = done.iterations
    if done.stop == "converged":
        why = f"A random right-hand side takes {tried} iteration{'s' * (tried != 1)}."
        return Iterations(tried, max(1, tried // 2), 2 * tried, why, tried)
    if done.stop != "most iterations":
        raise InputError(
            f"conjugate gradients: {done.stop}: expected a positive definite matrix; name another"
        )
    least, greatest, error = _lanczos(done.coefficients)
    rows = int(A.shape[0])
    most = cg.most_iterations(rows)  # more than rows: rounding makes directions come back
    expected = max(tried + 1, _needed(greatest / least, tolerance))
    lowest = least - error
    high = max(expected, _needed(greatest / lowest, tolerance)) if lowest > 0 else most
    why = f"{tried} Lanczos steps were done: the condition number is at least {greatest / least:.3g}" + (
        f", and about {greatest / lowest:.3g} at most, unless the steps missed its least value."
        if lowest > 0
        else ", and nothing bounds it from above but the iterations at which a run ends."
    )
    return Iterations(
        min(expected, max(rows, tried + 1)), tried + 1, min(high, max(most, tried + 1)), why, tried
    )


def _needed(condition: float, tolerance: float) -> int:
    """Return the iterations that suffice for a condition number."""
    return math.ceil(math.sqrt(condition) / 2 * math.log(2 / tolerance))


def _lanczos(coefficients: tuple[tuple[float, float], ...]) -> tuple[float, float, float]:
    """Return the least and the greatest value of Lanczos' matrix, and how wrong the least may be."""
    alpha, beta = np.array(coefficients).T
    diagonal = 1 / alpha
    diagonal[1:] += beta[:-1] / alpha[:-1]
    beside = np.sqrt(beta) / alpha
    values, vectors = eigh_tridiagonal(diagonal, beside[:-1])
    return float(values[0]), float(values[-1]), float(abs(beside[-1] * vectors[-1, 0]))
