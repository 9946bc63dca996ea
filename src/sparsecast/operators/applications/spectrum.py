"""How many iterations conjugate gradients will take, by the spectrum that the first ones tell.

k iterations give the values and weights of k Lanczos steps: the Gauss quadrature of the eigenvalues, each
weighted by its share of the right-hand side (Golub and Meurant, Matrices, Moments and Quadrature, 2010). The
share below a value is interpolated between them, and is continued to one eigenvalue as a power, which Weyl's
law has for discretised operators. The method is then run on a diagonal matrix of that spectrum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh_tridiagonal

Floats = NDArray[np.floating[Any]]

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
