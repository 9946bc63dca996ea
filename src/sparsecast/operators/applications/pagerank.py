"""PageRank by the power method (Barreda et al. 2020, Algorithm 2), on any operator.

The vectors are those of the operator's space that the host can read. On a GPU they travel for each product.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
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
    scipy_operator,
)
from sparsecast.operators.applications.defaults import DAMPING, EPSILON
from sparsecast.operators.applications.graphs import links
from sparsecast.operators.block_operator import Operator

#: What the loops of an iteration are called where they are one.
TOGETHER = "L1-L4"

#: Entries of a vector in a cache line.
_LINE = 8

#: Iterations after which it ends in any case.
MOST_ITERATIONS = 1000

#: Iterations that are done with SciPy's product to forecast the number of all.
TRIALS = 8


@dataclass(frozen=True, slots=True, eq=False)
class PageRank:
    """The ranks of a graph.

    Attributes
    ----------
    ranks : float array of shape (nodes,)
        Of each node; they sum to 1. In parts where the vectors of the operator are.
    residuals : tuple of float
        Sum of the absolute changes of the ranks in each iteration.
    stop : str
        Why it ended: ``"converged"`` or ``"most iterations"``.
    """

    ranks: Any
    iterations: int
    residuals: tuple[float, ...]
    stop: str


@APPLICATIONS.register("pagerank")
class PageRankOfGraph(Application):
    """PageRank of a graph with an edge i -> j of weight a_ij for each entry of A."""

    name = "pagerank"
    settings = ("damping", "epsilon")
    vectors = 4  # the ranks, those before, what is sent, and the inverse weights
    most_iterations = MOST_ITERATIONS

    def __init__(self, A: csr_array[Any], damping: float = DAMPING, epsilon: float = EPSILON) -> None:
        refuse_settings(damping, epsilon, 1)
        self.damping, self.epsilon = damping, epsilon
        self.graph = links(A)
        self.matrix = self.graph.matrix
        share = len(self.graph.dangling) / self.graph.nodes
        self.loops = loops(share, self.graph.inverse_weight is not None)
        if not self.matrix.nnz:
            self.notes = ("The graph has no edges: all nodes are dangling, and have the same rank.",)

    def iterations(self) -> Iterations:
        """Return the iterations: some are done, the others follow from how the change shrinks.

        The change shrinks by the damping factor at least in each iteration, which gives the most. It hardly
        ever shrinks faster later than it does after some, which gives the fewest (Haveliwala and Kamvar
        2003).
        """
        done = self.ranked(scipy_operator(self.matrix), TRIALS)
        tried, change = done.iterations, done.residuals[-1]
        if done.stop == "converged":
            counted = "1 iteration" if tried == 1 else f"{tried} iterations"
            return Iterations(tried, tried, tried, f"PageRank converges in {counted}.", tried)
        rate = min(self.damping, change / done.residuals[-2])
        shrinking = math.log(self.epsilon / change)
        high = math.ceil(shrinking / math.log(self.damping))
        low = math.ceil(shrinking / math.log(rate)) if rate > 0 else 1
        why = (
            f"{tried} iterations were tried: each now divides the change by {1 / rate:.2f}, and by "
            f"{1 / self.damping:.2f} at least, the damping factor."
        )
        return Iterations(tried + round(math.sqrt(low * high)), tried + low, tried + high, why, tried)

    def run(self, op: Operator, most: int, on_iteration: OnIteration, laps: Laps) -> PageRank:
        laps.start()
        return self.ranked(op, most, on_iteration, laps)

    def ranked(
        self, op: Operator, most: int, on_iteration: OnIteration = no_iteration, lap: Lap = no_laps
    ) -> PageRank:
        return pagerank(
            op,
            self.graph.dangling,
            self.graph.inverse_weight,
            damping=self.damping,
            epsilon=self.epsilon,
            most=most,
            on_iteration=on_iteration,
            lap=lap,
        )


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


def most_iterations(damping: float, epsilon: float) -> int:
    """Return the iterations after which the change of the ranks is surely at most epsilon.

    It is at most 2 after none, and each iteration multiplies it by the damping factor or less.
    """
    return max(1, 1 + math.ceil(math.log(epsilon / 2) / math.log(damping)))


def pagerank(
    op: Operator,
    dangling: Any,
    inverse_weight: Any = None,
    *,
    damping: float = DAMPING,
    epsilon: float = EPSILON,
    most: int = MOST_ITERATIONS,
    on_iteration: OnIteration = no_iteration,
    lap: Lap = no_laps,
) -> PageRank:
    """Return the ranks of the nodes of a graph.

    Parameters
    ----------
    op : Operator
        Of `Links.matrix`, real and square.
    dangling : integer array
        Places of the dangling nodes in this process's part of a vector; one array for each where the vectors
        of the operator are in several.
    inverse_weight : vector, or None
        As in Links, a vector of the operator's space.
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
    from sparsecast.operators.applications.vector_loops import (
        Loops,
        fill,
        multiply,
        settle,
        settle_and_send,
        sum_at,
    )

    space, nodes = op.domain, op.shape[0]
    over = Loops(space)
    p, y = space.host_zeros(), space.host_zeros()
    sent = p if inverse_weight is None else space.host_zeros()
    over.run(fill, 1 / nodes, p)  # L0
    if inverse_weight is not None:
        over.run(multiply, p, inverse_weight, sent)
        lost = over.total(sum_at, p, dangling)
    lap("L0")
    residuals: list[float] = []
    while len(residuals) < most:
        if inverse_weight is None:
            lost = over.total(sum_at, p, dangling)  # L1: what dangling nodes would send
            lap("L1")
        op.matvec(sent, out=y)
        lap(PRODUCT)
        shift = (damping * lost + 1 - damping) / nodes
        if inverse_weight is None:
            residuals.append(over.total(settle, damping, shift, y, p))  # L2 to L4
            lap("L2-L4")
        else:
            change, lost = over.totals(settle_and_send, damping, shift, y, p, inverse_weight, sent)
            residuals.append(change)  # L2 to L4, and L1
            lap(TOGETHER)
        on_iteration(len(residuals), residuals[-1])
        if residuals[-1] < epsilon:
            return PageRank(p, len(residuals), tuple(residuals), "converged")
    return PageRank(p, len(residuals), tuple(residuals), "most iterations")


def refuse_settings(damping: float, epsilon: float, most: int) -> None:
    """Raise an InputError for settings with which no iteration would make sense."""
    if not 0 < damping < 1:
        raise InputError(f"damping {damping:g}: expected a number between 0 and 1; usual is {DAMPING}")
    if not 0 < epsilon < np.inf:
        raise InputError(f"epsilon {epsilon:g}: expected a number above 0; usual is {EPSILON:g}")
    if most < 1:
        raise InputError(f"{most} iterations at most: expected at least 1; allow some")
