"""What networkx calls for ``backend="sparsecast"``: measures of nodes that are found by products.

Results and exceptions are those of networkx, within its tolerances. What it can do and we cannot raises
NotImplementedError, as it expects: with a backend priority it then computes by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import chain
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import ArpackNoConvergence, svds

from sparsecast.api.executing import in_csr
from sparsecast.api.shortcuts import pagerank as ranked
from sparsecast.errors import InputError
from sparsecast.operators.block_operator import BlockOperator

#: Smaller graphs are left to networkx where it chooses: to load compiled products takes longer.
LEAST_EDGES = 10_000


class Graph:
    """A graph and its adjacency matrices, which networkx keeps with the original until that changes."""

    __networkx_backend__ = "sparsecast"

    def __init__(self, original: Any) -> None:
        self.original, self.nodes = original, list(original)
        self.is_directed, self.is_multigraph = original.is_directed, original.is_multigraph
        self.matrix, self.operator = cache(self._matrix), cache(self._operator)

    def __len__(self) -> int:
        return len(self.nodes)

    def _matrix(self, weight: Any) -> csr_array[Any]:
        """Return the adjacency matrix of an attribute, 1 where an edge lacks it; parallel edges are added."""
        place = {node: k for k, node in enumerate(self.nodes)}
        neighbours = [self.original._adj[node] for node in self.nodes]
        starts = np.cumsum([0, *map(len, neighbours)])
        columns = np.fromiter(map(place.__getitem__, chain.from_iterable(neighbours)), np.int64, starts[-1])
        edges = chain.from_iterable(each.values() for each in neighbours)
        if self.is_multigraph():
            values = [sum(edge.get(weight, 1) for edge in parallel.values()) for parallel in edges]
        else:
            values = [edge.get(weight, 1) for edge in edges]
        made = csr_array((np.array(values, dtype=float), columns, starts), shape=2 * (len(self),))
        made.sort_indices()
        return made

    def _operator(self, weight: Any) -> BlockOperator:
        return in_csr(self.matrix(weight), None)

    def vector(self, values: Mapping[Any, float]) -> NDArray[Any]:
        return np.array([values[node] for node in self.nodes], dtype=float)

    def by_node(self, values: NDArray[Any]) -> dict[Any, float]:
        return dict(zip(self.nodes, values.tolist(), strict=True))

    def fixed_point(self, step: Any, x: NDArray[Any], max_iter: int, tol: float) -> NDArray[Any]:
        """Repeat a step until the sum of the absolute changes is below `tol` a node."""
        for _ in range(max_iter):
            last, x = x, step(x)
            if np.abs(x - last).sum() < tol * len(self):
                return x
        raise nx.PowerIterationFailedConvergence(max_iter)


def convert_from_nx(graph: Any, **_: Any) -> Graph:
    return Graph(graph)


def convert_to_nx(converted: Any, **_: Any) -> Any:
    return converted.original if isinstance(converted, Graph) else converted


def should_run(name: str, args: Any, kwargs: Any) -> bool | str:
    """Return whether networkx shall choose this backend by itself."""
    graph = args[0] if args else kwargs["G"]
    is_worth_it = isinstance(graph, Graph) or graph.number_of_edges() >= LEAST_EDGES
    return is_worth_it or f"fewer than {LEAST_EDGES:,} edges are done before compiled products are loaded"


# Functions with the names, parameters and exceptions of networkx; G is a Graph.


def pagerank(
    G, alpha=0.85, personalization=None, max_iter=100, tol=1e-6, nstart=None, weight="weight", dangling=None
):
    if not len(G):
        return {}
    given = {"personalization": personalization, "dangling": dangling, "start": nstart}
    vectors = {
        name: np.array([values.get(node, 0) for node in G.nodes], dtype=float)
        for name, values in given.items()
        if values is not None
    }
    if personalization is not None and vectors["personalization"].sum() == 0:
        raise ZeroDivisionError("the values of personalization are all 0: expected one that is not")
    if max_iter < 1:
        raise nx.PowerIterationFailedConvergence(max_iter)
    try:
        done = ranked(G.matrix(weight), damping=alpha, epsilon=len(G) * tol, most=max_iter, **vectors)
    except InputError as error:
        raise NotImplementedError(str(error)) from error
    if done.stop != "converged":
        raise nx.PowerIterationFailedConvergence(max_iter)
    return G.by_node(done.ranks)


def eigenvector_centrality(G, max_iter=100, tol=1e-6, nstart=None, weight=None):
    if not len(G):
        raise nx.NetworkXPointlessConcept("a graph without nodes: expected at least one")
    x = np.ones(len(G)) if nstart is None else G.vector(nstart)
    if not x.any():
        raise nx.NetworkXError(
            "nstart: an initial vector cannot have all zero values; give one that is not 0"
        )
    op = G.operator(weight).T

    def step(x):
        y = x + op.matvec(x)
        return y / (np.linalg.norm(y) or 1.0)

    return G.by_node(G.fixed_point(step, x / x.sum(), max_iter, tol))


def katz_centrality(
    G, alpha=0.1, beta=1.0, max_iter=1000, tol=1e-6, nstart=None, normalized=True, weight=None
):
    if not len(G):
        return {}
    try:
        b = np.full(len(G), float(beta))
    except (TypeError, ValueError) as error:
        if set(beta) != set(G.nodes):
            raise nx.NetworkXError("beta lacks values of nodes: expected one for each") from error
        b = G.vector(beta)
    start, op = np.zeros(len(G)) if nstart is None else G.vector(nstart), G.operator(weight).T
    x = G.fixed_point(lambda x: alpha * op.matvec(x) + b, start, max_iter, tol)
    return G.by_node(x / (np.linalg.norm(x) or 1.0) if normalized else x)


def hits(G, max_iter=100, tol=1e-8, nstart=None, normalized=True, method="svd"):
    if method not in ("svd", "power_iteration"):
        raise ValueError(f"method not supported: {method}")
    if not len(G):
        return {}, {}
    if max_iter < 1:
        raise nx.PowerIterationFailedConvergence(max_iter)
    start, A = None if nstart is None else G.vector(nstart), G.operator("weight")
    if method == "power_iteration":  # the usual one of NetworkX 3.7
        if start is not None and not start.sum():
            raise nx.NetworkXError("nstart values must not sum to zero; give some that do not")

        def step(hubs):
            found = A.matvec(A.T.matvec(hubs))
            if not found.max():  # without edges
                raise nx.PowerIterationFailedConvergence(max_iter)
            return found / found.max()

        begin = np.full(len(G), 1 / len(G)) if start is None else start / start.sum()
        hubs = G.fixed_point(step, begin, max_iter, tol / len(G))
        authorities = A.T.matvec(hubs)
        authorities = authorities / authorities.max()
    else:
        try:
            _, _, vectors = svds(A, k=1, v0=start, maxiter=max_iter, tol=tol)
        except ArpackNoConvergence as error:
            raise nx.PowerIterationFailedConvergence(max_iter) from error
        authorities = vectors.reshape(-1)
        hubs = A.matvec(authorities)
    if normalized:
        hubs, authorities = hubs / hubs.sum(), authorities / authorities.sum()
    return G.by_node(hubs), G.by_node(authorities)
