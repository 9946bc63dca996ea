"""PageRank by the power method (Barreda et al. 2020, Algorithm 2), on any operator.

The vectors are NumPy arrays: all of a vector, or this process's part where the operator is distributed. On a
GPU they travel for each product.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.errors import InputError
from sparsecast.operators.applications.defaults import DAMPING, EPSILON
from sparsecast.operators.applications.laps import PRODUCT, Lap, VectorLoop, no_laps
from sparsecast.operators.block_operator import Operator

Floats = NDArray[np.floating[Any]]

#: What the loops of an iteration are called where they are one.
TOGETHER = "L1-L4"

#: Entries of a vector in a cache line.
_LINE = 8

#: Iterations after which it ends in any case.
MOST_ITERATIONS = 1000


def loops(dangling_share: float, divides: bool) -> tuple[VectorLoop, ...]:
    """Return the loops of Algorithm 2, an entry each: those of an iteration are one pass over the vectors.

    Parameters
    ----------
    dangling_share : float
        Of the nodes: without inverse weights, L1 reads the place of each of these, of 4 bytes, and the lines
        of p with one.
    divides : bool
        Whether p is multiplied by the inverse weights before each product, which tell the dangling nodes too.
    """
    scattered = dangling_share / 2 + min(1.0, _LINE * dangling_share)
    start = VectorLoop("L0", scattered + (5 if divides else 2), is_once=True)
    if divides:
        return start, VectorLoop(TOGETHER, 6)
    return start, VectorLoop("L1", scattered), VectorLoop("L2-L4", 3)


@dataclass(frozen=True, slots=True, eq=False)
class PageRank:
    """What came of it.

    Attributes
    ----------
    ranks : float array
        Of each node; they sum to 1. In parts where the operator is distributed.
    iterations : int
    residuals : tuple of float
        Sum of the absolute changes of the ranks in each iteration.
    stop : str
        Why it ended: ``"converged"`` or ``"most iterations"``.
    """

    ranks: Floats
    iterations: int
    residuals: tuple[float, ...]
    stop: str


def most_iterations(damping: float, epsilon: float) -> int:
    """Return the iterations after which the change of the ranks is surely at most epsilon.

    It is at most 2 after none, and each iteration multiplies it by the damping factor or less.
    """
    return max(1, 1 + math.ceil(math.log(epsilon / 2) / math.log(damping)))


def pagerank(
    op: Operator,
    dangling: NDArray[np.integer[Any]],
    inverse_weight: Floats | None = None,
    *,
    damping: float = DAMPING,
    epsilon: float = EPSILON,
    most: int = MOST_ITERATIONS,
    on_iteration: Callable[[int, float], object] = lambda iteration, residual: None,
    lap: Lap = no_laps,
) -> PageRank:
    """Return the ranks of the nodes of a graph.

    Parameters
    ----------
    op : Operator
        Of `Links.matrix`, real and square.
    dangling : integer array
        Places of the dangling nodes in this process's part of a vector.
    inverse_weight : float array, or None
        As in Links, this process's part.
    damping : float
        Between 0 and 1, both left out.
    epsilon : float
        The iteration ends when the ranks change by less, in the sum of absolute values.
    most : int
        Iterations after which it ends in any case.
    on_iteration : callable
        Called after each with its number and the change.
    lap : callable
        Called at the end of each loop, with its name.

    Raises
    ------
    InputError
        If `damping`, `epsilon` or `most` cannot be.
    """
    refuse_settings(damping, epsilon, most)
    from sparsecast.operators.applications.vector_loops import multiply, settle, settle_and_send, sum_at

    space, nodes = op.domain, op.shape[0]
    p, y = np.zeros((2, space.size), dtype=op.dtype)  # not the space's zeros, which may lie on a GPU
    sent = p if inverse_weight is None else np.zeros_like(p)
    p[:] = 1 / nodes  # L0
    if inverse_weight is not None:
        multiply(p, inverse_weight, sent)
        lost = space.total(sum_at(p, dangling))
    lap("L0")
    residuals: list[float] = []
    while len(residuals) < most:
        if inverse_weight is None:
            lost = space.total(sum_at(p, dangling))  # L1: what dangling nodes would send
            lap("L1")
        op.matvec(sent, out=y)
        lap(PRODUCT)
        shift = (damping * lost + 1 - damping) / nodes
        if inverse_weight is None:
            residuals.append(space.total(settle(y, damping, shift, p)))  # L2 to L4
            lap("L2-L4")
        else:
            change, own_lost = settle_and_send(y, damping, shift, p, inverse_weight, sent)  # L2 to L4, L1
            residuals.append(space.total(change))
            lost = space.total(own_lost)
            lap(TOGETHER)
        on_iteration(len(residuals), residuals[-1])
        if residuals[-1] < epsilon:
            return PageRank(p, len(residuals), tuple(residuals), "converged")
    return PageRank(p, len(residuals), tuple(residuals), "most iterations")


def refuse_settings(damping: float, epsilon: float, most: int) -> None:
    """Raise an InputError for settings with which no iteration would make sense."""
    if not 0 < damping < 1:
        raise InputError(f"damping {damping:g}: expected a number between 0 and 1; usual is {DAMPING}")
    if not 0 < epsilon < math.inf:
        raise InputError(f"epsilon {epsilon:g}: expected a number above 0; usual is {EPSILON:g}")
    if most < 1:
        raise InputError(f"{most} iterations at most: expected at least 1; allow some")
