"""PageRank against networkx and against a loop written by hand around SciPy's product, alternated in one run.

    python benchmarks/pagerank.py [--runs N] [--threads N] [--json] GRAPH...

GRAPH is a file or a gallery specification. All three have one tolerance: networkx stops at its own times
the number of nodes. A run of ours has the operator at hand, as the loop by hand has its transposed and
normalised matrix; networkx has its graph. What it takes to make these from the adjacency matrix stands in
the columns "made in". Ratios are medians over the runs, of the time of the other one over ours in the same
turn; above 1 ours is faster. "divided" is ours with each value divided by what leaves its node, and no
vector multiplied. Without networkx, which the extra `test` brings, the rest is measured.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.sparse import csr_array

from sparsecast import api
from sparsecast.errors import InputError
from sparsecast.matrices.problem import Problem
from sparsecast.operators.applications.defaults import DAMPING, EPSILON
from sparsecast.operators.applications.graphs import links
from sparsecast.operators.applications.pagerank import most_iterations, pagerank
from sparsecast.reports.tables import time

#: A run is repeated for so many seconds in each turn, once at least: the shortest is its time.
TURN_S = 0.3


def by_hand(A: csr_array[Any]) -> Callable[[], tuple[NDArray[Any], int]]:
    """Return PageRank as one would write it with NumPy and SciPy, its matrix made."""
    degree = np.asarray(A.sum(axis=1)).reshape(-1)
    inverse = np.divide(1.0, degree, out=np.zeros_like(degree), where=degree > 0)
    sent = csr_array(A.multiply(inverse[:, None]).T)
    dangling = np.flatnonzero(degree == 0)
    nodes = A.shape[0]

    def run() -> tuple[NDArray[Any], int]:
        p = np.full(nodes, 1 / nodes)
        iteration, change = 0, 1.0
        while change >= EPSILON:
            iteration += 1
            new = DAMPING * (sent @ p) + (DAMPING * p[dangling].sum() + 1 - DAMPING) / nodes
            change = np.abs(new - p).sum()
            p = new
        return p, iteration

    return run


@dataclass(frozen=True)
class Ours:
    """Our PageRank with the operator at hand: as it is, and with the values divided instead of the vector."""

    run: Callable[[], tuple[NDArray[Any], int]]
    divided: Callable[[], object]
    formats: str
    made_s: float


def ours(A: csr_array[Any], threads: int | None) -> Ours:
    """Return ours, in the format that is planned for as many products as the bound allows."""
    start = perf_counter()
    graph = links(A)
    made = api.plan(
        Problem.of(graph.matrix), iterations=most_iterations(DAMPING, EPSILON), threads=threads, as_met=True
    )
    operator = api.compile(graph.matrix, made)

    def run() -> tuple[NDArray[Any], int]:
        found = pagerank(operator, graph.dangling, graph.inverse_weight)
        return found.ranks, found.iterations

    made_s = perf_counter() - start
    sent, inverse = graph.matrix, graph.inverse_weight
    if inverse is not None:
        values = sent.data * inverse[sent.indices]
        sent = csr_array((values, sent.indices, sent.indptr), shape=sent.shape)
    divided = api.compile(sent, made)
    for each in (run, lambda: pagerank(divided, graph.dangling)):
        each()  # compiles the loops
    formats = "+".join(dict.fromkeys(block.candidate.format for block in made.blocks))
    return Ours(run, lambda: pagerank(divided, graph.dangling), formats, made_s)


def networkx_s(A: csr_array[Any]) -> tuple[Callable[[], NDArray[Any]], float] | None:
    """Return networkx's PageRank, its graph made, and the seconds to make that; None where it is missing."""
    try:
        import networkx
    except ImportError:
        return None
    start = perf_counter()
    graph = networkx.from_scipy_sparse_array(A, create_using=networkx.DiGraph)
    made_s = perf_counter() - start

    def run() -> NDArray[Any]:
        found = networkx.pagerank(graph, DAMPING, max_iter=1000, tol=EPSILON / A.shape[0])
        return np.fromiter(found.values(), dtype=float)

    return run, made_s


def seconds(run: Callable[[], object]) -> float:
    """Return the time of a run, the shortest of those that fit into a turn."""
    found: list[float] = []
    while not found or sum(found) < TURN_S:
        start = perf_counter()
        run()
        found.append(perf_counter() - start)
    return min(found)


def compared(name: str, threads: int | None, runs: int) -> dict[str, Any]:
    """Return the figures of one graph."""
    A = api.read_matrix(name).matrix
    own = ours(A, threads)
    start = perf_counter()
    hand = by_hand(A)
    hand_made_s = perf_counter() - start
    peer = networkx_s(A)
    ranks, iterations = own.run()
    expected, _ = hand()
    errors = [float(np.abs(ranks - expected).sum())]
    taken: dict[str, list[float]] = {"ours": [], "divided": [], "by hand": []}
    if peer is not None:
        errors.append(float(np.abs(ranks - peer[0]()).sum()))
        taken["networkx"] = []
    calls: dict[str, Callable[[], object]] = {"ours": own.run, "divided": own.divided, "by hand": hand}
    for _ in range(runs):
        for label in taken:
            taken[label].append(seconds(calls[label] if label in calls else peer[0]))  # type: ignore[index]
    ratios = {
        label: median(other / our for other, our in zip(each, taken["ours"], strict=True))
        for label, each in taken.items()
        if label != "ours"
    }
    return {
        "graph": Problem.named(name).name,
        "nodes": int(A.shape[0]),
        "edges": int(A.nnz),
        "format": own.formats,
        "iterations": iterations,
        "difference": max(errors),
        "time_s": {label: median(each) for label, each in taken.items()},
        "made_s": {"ours": own.made_s, "by hand": hand_made_s, "networkx": peer[1] if peer else None},
        "ratio": ratios,
    }


def main() -> None:
    """Measure the graphs and print a row for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graphs", nargs="+", metavar="GRAPH")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    found = []
    for name in asked.graphs:
        try:
            found.append(compared(name, asked.threads, asked.runs))
        except InputError as error:
            Console(stderr=True).print(str(error), soft_wrap=True)
    if asked.json:
        print(json.dumps(found))
        return
    table = Table(title="PageRank, damping 0.85, epsilon 1e-6")
    ratios = [f"{label} / ours" for label in ("by hand", "networkx", "divided")]
    headings = "nodes", "edges", "iterations", "ours", "by hand", "networkx", *ratios
    table.add_column("graph")
    table.add_column("format")
    for heading in (*headings, "made in", "networkx in", "difference"):
        table.add_column(heading, justify="right")
    for each in sorted(found, key=lambda item: item["ratio"]["by hand"]):
        times, ratio, made = each["time_s"], each["ratio"], each["made_s"]
        table.add_row(
            each["graph"],
            each["format"],
            *(f"{each[key]:,}" for key in ("nodes", "edges", "iterations")),
            *(time(times.get(label)) for label in ("ours", "by hand", "networkx")),
            *(
                f"{ratio[label]:.2f}" if label in ratio else "-"
                for label in ("by hand", "networkx", "divided")
            ),
            time(made["ours"]),
            time(made["networkx"]),
            f"{each['difference']:.1e}",
        )
    Console(width=170).print(table)


if __name__ == "__main__":
    main()
