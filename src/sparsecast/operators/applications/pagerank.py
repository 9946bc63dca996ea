"""PageRank by the power method (Barreda et al. 2020, Algorithm 2), on any operator.

The vectors are those of the operator's space that the host can read. On a GPU they travel for each product.

The matrix is the transposed graph: the links to each node, weighted by the share of their origin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
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
from sparsecast.operators.applications.defaults import DAMPING, EPSILON
from sparsecast.operators.block_operator import Operator
from sparsecast.system.texts import counted

#: Name of the merged loops of an iteration.
TOGETHER = "L1-L4"

#: Entries of a vector in a cache line.
_LINE = 8

#: Greatest number of iterations.
MOST_ITERATIONS = 1000

#: Iterations with SciPy's product that forecast the number of all.
TRIALS = 12

#: Rates, as shares of the damping factor, of the exponentials that the changes of the ranks are a sum of; and
#: the weight of the assumption that all are as large. `benchmarks/run.py iterations` shows what comes of it.
_RATES, _EQUAL_WEIGHT = np.linspace(0.05, 1.0, 20), 0.01


@dataclass(frozen=True, slots=True, eq=False)
class PageRank:
    """The ranks of a graph.

    Attributes
    ----------
    ranks : float array of shape (nodes,)
        Of each node, with the sum 1; divided like the vectors of the operator.
    residuals : tuple of float
        Sum of the absolute changes of the ranks in each iteration.
    stop : str
        ``"converged"`` or ``"most iterations"``.
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
    most_iterations, trials = MOST_ITERATIONS, TRIALS

    def __init__(self, A: csr_array[Any], damping: float = DAMPING, epsilon: float = EPSILON) -> None:
        refuse_settings(damping, epsilon, 1)
        self.damping, self.epsilon = damping, epsilon
        self.graph = links(A)
        self.matrix = self.graph.matrix
        share = len(self.graph.dangling) / self.graph.nodes
        self.is_alike = self.graph.inverse_weight is not None and self.matrix.nnz > 0
        self.loops = loops(share, self.graph.inverse_weight is not None)
        if not self.matrix.nnz:
            self.notes = ("The graph has no edges: all nodes are dangling, and have the same rank.",)

    def told(self, done: PageRank) -> Iterations:
        """Return the iterations, which follow from the decrease of the change in the first ones.

        The change shrinks at least by the damping factor in each iteration, which gives the upper bound. It
        hardly ever shrinks faster later than after some iterations, which gives the lower bound (Haveliwala
        and Kamvar 2003). Between them, the change is taken for a sum of exponentials: slow ones show late.
        """
        tried, change = done.iterations, done.residuals[-1]
        if done.stop == "converged":
            why = f"PageRank converges in {counted(tried, 'iteration')}."
            return Iterations(tried, tried, tried, why, tried)
        rate = min(self.damping, change / done.residuals[-2])
        shrinking = math.log(self.epsilon / change)
        high = math.ceil(shrinking / math.log(self.damping))
        low = math.ceil(shrinking / math.log(rate)) if rate > 0 else 1
        why = (
            f"{counted(tried, 'iteration')} were tried: each now divides the change by {1 / rate:.2f}, and "
            f"by {1 / self.damping:.2f} at least, the damping factor."
        )
        expected = iterations_of(done.residuals, self.epsilon, self.damping)
        least, most = tried + low, tried + high
        return Iterations(min(max(expected, least), most), least, most, why, tried)

    def untried(self) -> Iterations:
        most = most_iterations(self.damping, self.epsilon)
        why = "No iteration was tried: the damping factor bounds their number, and most runs end sooner."
        return Iterations(most, 1, most, why)

    def run(self, op: Operator, most: int, on_iteration: OnIteration, laps: Laps) -> PageRank:
        laps.start()
        return self.ranked(op, most, on_iteration=on_iteration, lap=laps)

    def ranked(self, op: Operator, most: int, **asked: Any) -> PageRank:
        """Return the ranks; what is `asked` is as in `pagerank`."""
        asked |= {"damping": self.damping, "epsilon": self.epsilon, "most": most}
        return pagerank(op, self.graph.dangling, self.graph.inverse_weight, **asked)


def iterations_of(changes: Sequence[float], epsilon: float, damping: float) -> int:
    """Return after how many iterations the change of the ranks is `epsilon`, by those of the first ones.

    The change is a sum of powers of the eigenvalues, which the damping factor bounds. It is fitted as one of
    non-negative multiples of twenty exponentials, by relative errors and without the first iteration.
    """
    from scipy.optimize import nnls

    measured, last = np.asarray(changes), len(changes) - 1
    rates, places = damping * _RATES, np.arange(1, last + 1)
    fitted = rates ** places[:, None] / measured[places, None]
    equal = _EQUAL_WEIGHT * np.diag(rates**last / measured[last])
    wanted = np.r_[np.ones(last), np.full(len(rates), _EQUAL_WEIGHT / len(rates))]
    shares, _ = nnls(np.vstack([fitted, equal]), wanted)
    place = last
    while shares @ rates**place > epsilon:
        place += 1
    return place + 1


def loops(dangling_share: float, divides: bool) -> tuple[VectorLoop, ...]:
    """Return the loops of Algorithm 2; those of an iteration are one pass over the vectors.

    Without inverse weights, L1 reads the places of the dangling nodes, of 4 bytes, and their lines of p. With
    them p is multiplied by these before each product (`divides`); they also mark the dangling nodes.
    """
    scattered = dangling_share / 2 + min(1.0, _LINE * dangling_share)
    start = VectorLoop("L0", scattered + (5 if divides else 2), is_once=True)
    if divides:
        return start, VectorLoop(TOGETHER, 6)
    return start, VectorLoop("L1", scattered), VectorLoop("L2-L4", 3)


def most_iterations(damping: float, epsilon: float) -> int:
    """Return the iterations after which the change of the ranks is certainly at most epsilon.

    It begins with at most 2, and shrinks at least by the damping factor per iteration.
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
    start: PageRank | None = None,
    jumps: tuple[Any, Any] | None = None,
) -> PageRank:
    """Return the ranks of the nodes of a graph.

    Parameters
    ----------
    op : Operator
        Of `Links.matrix`, real and square.
    dangling : integer array
        Places of the dangling nodes in this process's part of a vector; a list of arrays for divided vectors.
    inverse_weight : vector, or None
        As in Links, a vector of the operator's space.
    damping : float
        Between 0 and 1, both excluded.
    epsilon : float
        Sum of absolute changes of the ranks at the end.
    most : int
        Greatest number of iterations.
    on_iteration : callable
        Called after each with its number and the change.
    lap : callable
        Called at the end of each loop, with its name.
    start : PageRank, optional
        A run that ended too soon, such as one with another operator: it is gone on with.
    jumps : two vectors of the operator's space with the sum 1, optional
        How probable each node is where no link is followed: at any time (the personalization), and from a
        dangling node. All are alike by default.

    Raises
    ------
    InputError
        If `damping`, `epsilon` or `most` is out of range.
    """
    refuse_settings(damping, epsilon, most)
    from sparsecast.operators.applications.vector_loops import (
        Loops,
        add,
        copy,
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
    if start is None:
        over.run(fill, 1 / nodes, p)  # L0
    else:
        over.run(copy, start.ranks, p)
    if inverse_weight is not None:
        over.run(multiply, p, inverse_weight, sent)
        lost = over.total(sum_at, p, dangling)
    lap("L0")
    residuals = list(start.residuals) if start else []
    while len(residuals) < most:
        if inverse_weight is None:
            lost = over.total(sum_at, p, dangling)  # L1: what dangling nodes would send
            lap("L1")
        op.matvec(sent, out=y)
        lap(PRODUCT)
        shift = (damping * lost + 1 - damping) / nodes
        if jumps is not None:
            over.run(add, (1 - damping) / damping, jumps[0], y)
            over.run(add, lost, jumps[1], y)
            shift = 0.0
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
    """Raise an InputError for impossible settings."""
    if not 0 < damping < 1:
        raise InputError(f"damping {damping:g}: expected a number between 0 and 1; usual is {DAMPING}")
    if not 0 < epsilon < np.inf:
        raise InputError(f"epsilon {epsilon:g}: expected a number above 0; usual is {EPSILON:g}")
    if most < 1:
        raise InputError(f"{most} iterations at most: expected at least 1; allow some")


Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """The transposed graph."""

    #: Shape (nodes, nodes): row j holds the edges to node j. If all weights are equal, they are those of the
    #: graph, in the same array; otherwise each is divided by the sum of the weights that leave its node.
    matrix: csr_array[Any]
    #: Shape (nodes,): one over the sum of the weights that leave each node, 0 for a dangling one: the factor
    #: of the vector before a product. None if the matrix is already divided.
    inverse_weight: Floats | None
    dangling: NDArray[np.integer[Any]]  # nodes without leaving weight

    @property
    def nodes(self) -> int:
        return int(self.matrix.shape[0])


def links(A: csr_array[Any]) -> Links:
    """Return the links of a graph with an edge i -> j of weight a_ij for each entry of A.

    Edges from a node to itself count, entries of 0 do not. Without any edge all nodes are dangling, and
    PageRank is the same for each. An InputError refuses an A that is not square, is complex, or has a
    negative or infinite weight.
    """
    entries = int(A.indptr[-1])
    if entries < len(A.data):  # room behind the entries, as SciPy leaves it
        A = csr_array((A.data[:entries], A.indices[:entries], A.indptr), shape=A.shape)
    _refuse_no_graph(A)
    rows = A.shape[0]
    lengths = np.diff(A.indptr)
    is_alike = A.nnz == 0 or bool(A.data[0] > 0 and (A.data == A.data[0]).all())
    if is_alike:
        leaving = lengths * (A.data[0] if A.nnz else A.dtype.type(0))
    else:
        leaving = np.asarray(A.sum(axis=1), dtype=A.dtype).reshape(-1)
    inverse = np.zeros(rows, dtype=A.dtype)
    with np.errstate(over="ignore"):  # looked at in the next line
        np.divide(1, leaving, out=inverse, where=leaving > 0)
    # The weights that leave a node need a finite sum, and that a finite inverse.
    odd = np.flatnonzero(~(np.isfinite(leaving) & np.isfinite(inverse)))
    if odd.size:
        node = int(odd[0])
        raise InputError(
            f"a graph whose weights from node {node:,} sum to {leaving[node]:g}: expected a sum with "
            f"a finite inverse; scale the weights"
        )
    dangling = np.flatnonzero(leaving == 0).astype(A.indices.dtype)
    if is_alike:
        # Only the places are transposed: one byte per entry instead of eight, and no second array of values.
        turned = csr_array((np.zeros(A.nnz, dtype=np.int8), A.indices, A.indptr), shape=A.shape).tocsc()
    else:
        scaled = A.data * np.repeat(inverse, lengths)
        turned = csr_array((scaled, A.indices, A.indptr), shape=A.shape).tocsc()
    data = A.data if is_alike else turned.data
    matrix = csr_array((data, turned.indices, turned.indptr), shape=A.shape)
    matrix.has_sorted_indices = True  # a transposition goes through the rows in order
    return Links(matrix, inverse if is_alike else None, dangling)


def _refuse_no_graph(A: csr_array[Any]) -> None:
    if A.shape[0] != A.shape[1] or not A.shape[0]:
        raise InputError(
            f"a graph of {A.shape[0]:,} rows and {A.shape[1]:,} columns: expected as many columns as rows, "
            f"at least one; name the adjacency matrix of a graph"
        )
    if A.dtype.kind == "c":
        raise InputError("a graph with complex weights: expected real ones; take their absolute values")
    if A.nnz and not np.isfinite(A.data).all():
        raise InputError("a graph with weights that are NaN or infinite: expected finite ones; remove them")
    if A.nnz and A.data.min() < 0:
        raise InputError(
            f"a graph with the weight {A.data.min():g}: expected none below 0, because PageRank takes "
            f"weights for probabilities; take absolute values, or leave the edge out"
        )
