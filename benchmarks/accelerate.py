"""What users of networkx, pyamg and scikit-learn gain: their times before and after, set-up included."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from scipy.sparse import csr_array

import sparsecast as sc
from experiment import Row, Rows, Threads, experiment, timed
from sparsecast.matrices.gallery import gallery
from sparsecast.operators.sparse_arrays import with_operator

#: The matrices of a level of pyamg's solvers that are planned.
_PLANNED = ("A", "P", "R")


@experiment("Speed")
def accelerate(
    scale: Annotated[int, typer.Option(help="The graph has 2^scale nodes.", min=4)] = 16,
    n: Annotated[int, typer.Option(help="Grid points along an edge of the cube.", min=4)] = 64,
    rows: Annotated[int, typer.Option(help="Documents of the matrix of terms.", min=100)] = 100_000,
    components: Annotated[int, typer.Option(help="Singular values.", min=1)] = 50,
    solves: Annotated[int, typer.Option(help="Right-hand sides.", min=1)] = 10,
    threads: Threads = 2,
) -> Rows:
    """Programs of other libraries before and after; `set-up` is within `after`, `again` is without it."""
    yield from _networkx(scale)
    yield from _pyamg(n, solves, threads)
    yield from _truncated_svd(rows, components, threads)


def _row(program: str, before_s: float, after_s: float, again_s: float, **more: Any) -> Row:
    times = {"before_s": before_s, "after_s": after_s, "set-up_s": max(0.0, after_s - again_s)}
    gains = {"gain": before_s / after_s, "again_s": again_s, "gain again": before_s / again_s}
    return {"program": program, **times, **gains, **more}


def _networkx(scale: int) -> Rows:
    """Measures of nodes; a call after the first finds the converted graph."""
    import networkx as nx

    nx.config.warnings_to_ignore.add("cache")
    graph = nx.from_scipy_sparse_array(gallery("rmat", scale=scale), create_using=nx.DiGraph)
    nx.pagerank(nx.path_graph(3), backend="sparsecast")  # loads compiled code
    calls: dict[str, Callable[..., Any]] = {
        "pagerank": lambda **how: nx.pagerank(graph, **how),
        "pagerank tol=1e-12": lambda **how: nx.pagerank(graph, tol=1e-12, max_iter=500, **how),
        "eigenvector_centrality": lambda **how: nx.eigenvector_centrality(graph, max_iter=500, **how),
        "katz_centrality": lambda **how: nx.katz_centrality(graph, alpha=1e-4, **how),
        "hits": lambda **how: nx.hits(graph, **how),
    }
    for name, call in calls.items():
        theirs, before_s = timed(call)
        graph.__networkx_cache__.clear()
        ours, after_s = timed(lambda call=call: call(backend="sparsecast"))
        _, again_s = timed(lambda call=call: call(backend="sparsecast"))
        yield _row(f"networkx {name}", before_s, after_s, again_s, difference=_greatest(ours, theirs))
    yield f"networkx: a directed graph of {len(graph):,} nodes and {graph.number_of_edges():,} edges."


def _greatest(ours: Any, theirs: Any) -> float:
    pairs = zip(ours, theirs, strict=True) if isinstance(ours, tuple) else [(ours, theirs)]
    return max(abs(a[node] - b[node]) for a, b in pairs for node in b)


class _Timed:
    """Products of SciPy, with their seconds."""

    spent_s = 0.0

    def __init__(self, A: Any) -> None:
        self._A = A

    def matvec(self, x: NDArray[Any]) -> NDArray[Any]:
        y, taken_s = timed(lambda: self._A @ x)
        _Timed.spent_s += taken_s
        return y


def _products_share(solver: Any, solve: Callable[[Any], Any]) -> float:
    """Return the share of products in the time of a solver."""
    copied = copy.copy(solver)
    copied.levels = [copy.copy(level) for level in solver.levels]
    for level in copied.levels[:-1]:
        for name in _PLANNED:
            setattr(level, name, with_operator(matrix := getattr(level, name), partial(_Timed, matrix)))
    _Timed.spent_s = 0.0
    _, total_s = timed(lambda: solve(copied))
    return _Timed.spent_s / total_s


def _pyamg(n: int, solves: int, threads: int) -> Rows:
    """Solve with several right-hand sides; the hierarchy itself is there before."""
    import pyamg

    A = csr_array(gallery("poisson3d", n=n))
    right = np.random.default_rng(0).uniform(-1, 1, (solves, A.shape[0]))

    def solve(made: Any) -> tuple[NDArray[Any], int]:
        found, cycles = [], 0
        for b in right:
            residuals: list[float] = []
            found.append(made.solve(b, tol=1e-8, accel="cg", residuals=residuals))
            cycles += len(residuals)
        return np.array(found), cycles

    for name, options in (("gauss_seidel", {"sweep": "symmetric"}), ("chebyshev", {})):
        solver = pyamg.smoothed_aggregation_solver(
            A, presmoother=(name, options), postsmoother=(name, options)
        )
        solve(solver)  # factorizes the coarsest matrix
        (theirs, cycles), before_s = timed(partial(solve, solver))
        share = _products_share(solver, solve)
        made, set_up_s = timed(partial(sc.accelerate, solver, products=cycles, threads=threads))
        (ours, _), again_s = timed(partial(solve, made))
        levels = list(zip(made.levels[:-1], solver.levels[:-1], strict=True))
        replaced = sum(getattr(a, part) is not getattr(b, part) for a, b in levels for part in _PLANNED)
        difference = float(np.abs(ours - theirs).max() / np.abs(theirs).max())
        more = {"difference": difference, "products share": share, "matrices": replaced}
        yield _row(f"pyamg {name}", before_s, set_up_s + again_s, again_s, **more)
        solved = f"{A.shape[0]:,} unknowns, {solves} solves, {cycles} cycles, {len(levels) + 1} levels"
        yield f"pyamg {name}: {solved}."


def _truncated_svd(rows: int, components: int, threads: int) -> Rows:
    """Singular values of a matrix of documents and terms, of which some are frequent."""
    from sklearn.decomposition import TruncatedSVD

    generator = np.random.default_rng(0)
    terms = (20_000 * generator.power(0.5, rows * 60)).astype(np.int32)
    starts = np.arange(0, rows * 60 + 1, 60)
    X = csr_array((generator.uniform(size=rows * 60), terms, starts), shape=(rows, 20_000))
    X.sum_duplicates()
    estimator = TruncatedSVD(components, algorithm="arpack", random_state=0)
    theirs, before_s = timed(lambda: estimator.fit(X).singular_values_)
    made, set_up_s = timed(partial(sc.accelerate, X, products=10 * components, threads=threads))
    _, first_s = timed(lambda: estimator.fit(made))  # builds the transpose
    _, again_s = timed(lambda: estimator.fit(made))
    difference = float(np.abs(estimator.singular_values_ / theirs - 1).max())
    yield _row("scikit-learn TruncatedSVD", before_s, set_up_s + first_s, again_s, difference=difference)
    yield f"scikit-learn: {components} values of {rows:,} documents and 20,000 terms, {X.nnz:,} entries."
