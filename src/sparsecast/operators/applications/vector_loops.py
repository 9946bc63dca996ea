"""Loops over the parts of vectors that lie in this process, each one pass over its vectors."""

from __future__ import annotations

from sparsecast.system.jit import njit

# Sums may be added in any order: a vector unit then adds several entries at once.
_fast = njit(nogil=True, cache=True, fastmath={"reassoc", "contract", "nsz"})


@_fast
def sum_at(p, places):  # type: ignore[no-untyped-def]
    """Return the sum of the entries of a vector at some places."""
    total = 0.0
    for k in range(places.size):
        total += p[places[k]]
    return total


@_fast
def settle(y, damping, shift, p):  # type: ignore[no-untyped-def]
    """Overwrite p by damping y + shift; return the sum of the absolute changes."""
    change = 0.0
    for k in range(p.size):
        rank = damping * y[k] + shift  # L2
        change += abs(rank - p[k])  # L3
        p[k] = rank  # L4
    return change


@_fast
def settle_and_send(y, damping, shift, p, inverse, sent):  # type: ignore[no-untyped-def]
    """Do as `settle`, and write what nodes send along an edge; return also the ranks of those without one."""
    change, lost = 0.0, 0.0
    for k in range(p.size):
        rank = damping * y[k] + shift  # L2
        change += abs(rank - p[k])  # L3
        p[k] = rank  # L4
        sent[k] = rank * inverse[k]
        lost += rank if inverse[k] == 0 else 0.0  # L1 of the next iteration
    return change, lost


@_fast
def multiply(x, y, out):  # type: ignore[no-untyped-def]
    """Write the products of the entries of x and y."""
    for k in range(x.size):
        out[k] = x[k] * y[k]


@_fast
def precondition(r, inverse_diagonal, z):  # type: ignore[no-untyped-def]
    """Overwrite z by the inverse diagonal times r; return the sum of the products of r and z."""
    total = 0.0
    for k in range(r.size):
        value = r[k] * inverse_diagonal[k]
        z[k] = value
        total += r[k] * value
    return total


@_fast
def dot(x, y):  # type: ignore[no-untyped-def]
    """Return the sum of the products of the entries of x and y."""
    total = 0.0
    for k in range(x.size):
        total += x[k] * y[k]
    return total


@_fast
def step(alpha, p, q, x, r):  # type: ignore[no-untyped-def]
    """Overwrite x by x + alpha p and r by r - alpha q; return the sum of the squares of the new r."""
    total = 0.0
    for k in range(x.size):
        x[k] += alpha * p[k]
        value = r[k] - alpha * q[k]
        r[k] = value
        total += value * value
    return total


@_fast
def turn(z, beta, p):  # type: ignore[no-untyped-def]
    """Overwrite p by z + beta p."""
    for k in range(p.size):
        p[k] = z[k] + beta * p[k]
