"""Loops over vectors, each one pass over the arrays that hold them. Numbers come before vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Number
from typing import Any

from sparsecast.operators.block_operator import VectorSpace
from sparsecast.system.jit import njit

# Sums in any order, so that a vector unit adds several entries at once.
_fast = njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nsz"})


@dataclass(frozen=True, slots=True)
class Loops:
    """Runs loops over the arrays of vectors of a space."""

    space: VectorSpace

    def run(self, loop: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Call a loop with numbers and vectors, for each array of the vectors; return the results."""
        numbers = [argument for argument in arguments if isinstance(argument, Number)]
        vectors = arguments[len(numbers) :]
        return [loop(*numbers, *arrays) for arrays in zip(*map(self.space.arrays, vectors), strict=True)]

    def total(self, loop: Callable[..., float], *arguments: Any) -> float:
        return self.space.total(sum(self.run(loop, *arguments)))

    def totals(self, loop: Callable[..., tuple[float, ...]], *arguments: Any) -> list[float]:
        """Return the sums of a loop's results, over all arrays and processes."""
        return [self.space.total(sum(sums)) for sums in zip(*self.run(loop, *arguments), strict=True)]


def fill(value, x):
    x[:] = value


@_fast
def sum_at(p, places):
    """Return the sum of the entries of a vector at given places."""
    total = 0.0
    for k in range(places.size):
        total += p[places[k]]
    return total


@_fast
def settle(damping, shift, y, p):
    """Overwrite p with damping y + shift; return the sum of the absolute changes."""
    change = 0.0
    for k in range(p.size):
        rank = damping * y[k] + shift  # L2
        change += abs(rank - p[k])  # L3
        p[k] = rank  # L4
    return change


@_fast
def settle_and_send(damping, shift, y, p, inverse, sent):
    """As `settle`, and write what nodes send along an edge; return also the ranks of dangling nodes."""
    change, lost = 0.0, 0.0
    for k in range(p.size):
        rank = damping * y[k] + shift  # L2
        change += abs(rank - p[k])  # L3
        p[k] = rank  # L4
        sent[k] = rank * inverse[k]
        lost += rank if inverse[k] == 0 else 0.0  # L1 of the next iteration
    return change, lost


@_fast
def multiply(x, y, out):
    for k in range(x.size):
        out[k] = x[k] * y[k]


@_fast
def add(factor, x, y):
    for k in range(y.size):
        y[k] += factor * x[k]


def copy(x, out):
    out[:] = x


@_fast
def precondition(r, inverse_diagonal, z):
    """Overwrite z with the inverse diagonal times r; return the inner product of r and z."""
    total = 0.0
    for k in range(r.size):
        value = r[k] * inverse_diagonal[k]
        z[k] = value
        total += r[k] * value
    return total


@_fast
def dot(x, y):
    """Return the inner product of x and y."""
    total = 0.0
    for k in range(x.size):
        total += x[k] * y[k]
    return total


@_fast
def step(alpha, p, q, x, r):
    """Overwrite x with x + alpha p and r with r - alpha q; return the squared norm of the new r."""
    total = 0.0
    for k in range(x.size):
        x[k] += alpha * p[k]
        value = r[k] - alpha * q[k]
        r[k] = value
        total += value * value
    return total


@_fast
def turn(beta, z, p):
    for k in range(p.size):
        p[k] = z[k] + beta * p[k]
