"""Our products against other libraries, and plans against single formats."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from time import perf_counter
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from scipy.sparse import csr_array, tril

import sparsecast as sc
from experiment import (
    Folder,
    Kept,
    KeptLines,
    Matrices,
    Row,
    Rows,
    Threads,
    alternated,
    checked_product,
    chosen_variant,
    experiment,
    geometric_mean,
    in_folder,
    in_words,
    most_threads,
    named,
    timed,
    uniform_vector,
)
from libraries import IN_ORDER, SPIN_S, in_turn, library_call
from sparsecast.devices.binding import bind, prepared
from sparsecast.devices.product_timer import ReferenceProduct
from sparsecast.errors import FormatError, InputError, MissingLibraryError
from sparsecast.formats.libraries import LIBRARIES
from sparsecast.formats.libraries.library import PRODUCTS
from sparsecast.matrices.problem import Problem
from sparsecast.measuring.timing import DEFAULT_EFFORT, Call, Effort, measure
from sparsecast.system.texts import counted

PANEL = "Other libraries"


@experiment(PANEL)
def csr_against_scipy(matrices: Matrices = None) -> Rows:
    """Time our CSR against SciPy's, with one thread and with all; SciPy has one.

    Ours is the row loop that the rule chooses. A ratio is our time over SciPy's: below 1 we are faster.
    Matrices of 100,000 non-zeros or fewer are left out: there a call costs more than the product.
    """
    defaults = (
        *("poisson2d?n=500", "poisson3d?n=60", "poisson3d?n=40&points=27", "elasticity3d?n=16"),
        *("banded?n=100000", "random?n=200000", "random?n=400000&nnz_per_row=2", "rmat?scale=16"),
        *("circuit?n=200000", "arrow?n=200000"),
    )
    ratios: dict[str, list[float]] = {}
    for problem in named(matrices, [f"gallery:{name}" for name in defaults]):
        A, x = problem.matrix, uniform_vector(problem.matrix)
        if A.nnz <= 100_000:
            continue
        ours = {f"{count} threads": count for count in dict.fromkeys((1, most_threads()))}
        calls: dict[str, Call] = {
            name: checked_product(A, "csr", threads=count) for name, count in ours.items()
        }
        timings = measure({"SciPy": lambda A=A, x=x: A @ x, **calls}, Effort(samples=11, sample_s=0.01))
        row: dict[str, Any] = {"matrix": problem.name, "entries": A.nnz, "kernel": chosen_variant(A, "csr")}
        for name, timing in timings.items():
            row[f"{name}_s"] = timing.time_s
        for name in ours:
            ratio = timings[name].time_s / timings["SciPy"].time_s
            ratios.setdefault(name, []).append(ratio)
            row[f"{name} over SciPy"] = ratio
        yield row | {"noise": max(timing.noise or 0.0 for timing in timings.values())}
    for name, values in ratios.items():
        yield f"{name}: geometric mean of the ratios {geometric_mean(values):.3f}, worst {max(values):.3f}."


def single_formats(problem: Problem, threads: int) -> dict[str, Call]:
    """Return the checked product in every format that suits a matrix, in the kernel that the rule chooses."""
    A, calls = problem.matrix, {}
    x, out = uniform_vector(A), np.empty(A.shape[0], dtype=A.dtype)
    reference = ReferenceProduct.of(A, x)
    for candidate in sc.session(threads=threads).choice(problem).candidates:
        try:
            product = bind(prepared(A, candidate.dtype, candidate.index_bits), candidate).product
        except InputError as error:
            print(f"left out: {error}", file=sys.stderr)
            continue
        product(x, out)
        reference.check(out, candidate.format)
        calls[candidate.format] = lambda product=product: product(x, out)
    return calls


@dataclass(frozen=True, slots=True)
class Contest:
    """A matrix with the values as given or random ones, and the threads of a comparison."""

    problem: Problem
    values: str
    threads: int

    def row(self, rounds: int) -> dict[str, Any]:
        """Return the times of our plan, our CSR and every library that can be called, sampled in turn."""
        A = self.problem.matrix
        x, out = uniform_vector(A), np.empty(A.shape[0], dtype=A.dtype)
        reference = ReferenceProduct.of(A, x)
        plan = sc.plan(self.problem, products=PRODUCTS, threads=self.threads)
        operator = sc.compile(self.problem, plan)
        reference.check(operator.matvec(x, out), "the plan")
        calls: dict[str, Call] = {"plan": lambda: operator.matvec(x, out)}
        calls["our CSR"] = checked_product(A, "csr", threads=self.threads)
        missing, peers = {}, []
        for name in IN_ORDER:
            title, y = LIBRARIES.get(name).title, np.full_like(out, np.nan)
            try:
                calls[title] = library_call(name, A, x, y, self.threads)
                calls[title]()
                reference.check(y, title)
                peers.append(title)
            except (MissingLibraryError, FormatError) as error:
                missing[title] = str(error)
        timings = in_turn(calls, rounds, SPIN_S if self.threads > 1 and "MKL" in calls else 0.0)
        seconds = {name: timing.time_s for name, timing in timings.items()}
        peer = min(peers, key=seconds.__getitem__)
        noise = max(timings[name].noise or 0.0 for name in ("plan", peer))
        return {
            **{"matrix": self.problem.name, "values": self.values, "threads": self.threads, "entries": A.nnz},
            **{
                "choice": " ".join(dict.fromkeys(in_words(block.candidate) for block in plan.blocks)),
                "ours_s": seconds.pop("plan"),
            },
            **{"peer": peer, "peer_s": seconds[peer], "ratio": seconds[peer] / timings["plan"].time_s},
            **{"noise": noise, "seconds": seconds, "missing": missing},
        }


def randomised(A: csr_array[Any]) -> csr_array[Any]:
    """Return the matrix with random values at its entries; one that equals its transpose still does."""
    R = A.copy()
    R.data = np.random.default_rng(3).uniform(-1.0, 1.0, A.nnz)
    if A.shape[0] != A.shape[1] or (A != A.T).nnz:
        return R
    lower = tril(R, format="csr")
    return csr_array(lower + tril(R, -1, format="csr").T)


def contests(problem: Problem, threads: Sequence[int]) -> Iterator[Contest]:
    """Yield a matrix as it is and with random values, for each number of threads."""
    random = Problem.of(randomised(problem.matrix), problem.name)
    for values, asked in {"as given": problem, "random": random}.items():
        yield from (Contest(asked, values, count) for count in threads)


def verdicts(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what rows come to, by their values and threads."""
    for values, threads in sorted({(row["values"], row["threads"]) for row in rows}):
        those = [row for row in rows if (row["values"], row["threads"]) == (values, threads)]
        worst = min(those, key=lambda row: row["ratio"])
        mean = geometric_mean(row["ratio"] for row in those)
        below = sum(row["ratio"] < 0.97 for row in those)
        yield (
            f"Values {values}, {counted(threads, 'thread')}: geometric mean {mean:.2f} over {len(those)} "
            f"matrices, worst {worst['ratio']:.2f} ({worst['matrix']}), {below} below 0.97."
        )
    short = [
        row["seconds"]["PyTorch"] / row["ours_s"]
        for row in rows
        if row["threads"] > 1 and "PyTorch" in row["seconds"] and 1e-4 <= row["ours_s"] <= 2.5e-4
    ]
    if short:
        mean = geometric_mean(short)
        yield (
            f"Products of 100 to 250 us on several threads, against PyTorch: geometric mean {mean:.2f} over "
            f"{len(short)} comparisons, worst {min(short):.2f}, {sum(r < 0.97 for r in short)} below 0.97."
        )
    reasons = {f"{name}: {why}" for row in rows for name, why in row["missing"].items()}
    yield from sorted(reasons)


@experiment(PANEL)
def peers(
    matrices: Matrices = None,
    folder: Folder = None,
    threads: Annotated[list[int] | None, typer.Option(min=1, help="Once for each number.")] = None,
    least: Annotated[int, typer.Option(help="Non-zeros of the smallest matrix.")] = 300_000,
    rounds: Annotated[int, typer.Option(min=1)] = 15,
    lines: KeptLines = None,
) -> Rows:
    """Time the plan for a million products against every library, values as given and random.

    A ratio is the best library's time over ours: above 1 we are faster. Without --threads, one thread and all
    are compared; SciPy knows one. Libraries that are missing, and why, stand below the table.
    """
    counts = threads or list(dict.fromkeys((1, most_threads())))
    kept = Kept(lines)
    defaults = "gallery:poisson3d?n=60", "gallery:rmat?scale=16"
    for problem in named([*(matrices or ()), *in_folder(folder)], defaults):
        A = problem.matrix
        if A.nnz < least or A.dtype.kind == "c":
            continue
        for contest in contests(problem, counts):
            key = {"matrix": problem.name, "values": contest.values, "threads": contest.threads}
            kept.add(key, partial(contest.row, rounds))
    for row in kept.rows:
        yield {name: value for name, value in row.items() if name not in ("seconds", "missing")}
    yield from verdicts(kept.rows)


@experiment(PANEL)
def plan_gain(matrices: Matrices = None, products: int = 100_000, threads: Threads = 1) -> Rows:
    """Time the planned operator against every single format: a gain is the other's time over the plan's."""
    for problem in named(matrices, ("gallery:poisson2d?n=500", "gallery:circuit?n=200000")):
        A, plan = problem.matrix, sc.plan(problem, products=products, threads=threads)
        operator = sc.compile(problem, plan)
        x = uniform_vector(A)
        out = operator.matvec(x)
        calls: dict[str, Call] = {"plan": lambda operator=operator, x=x, out=out: operator.matvec(x, out)}
        timings = measure(calls | single_formats(problem, threads), DEFAULT_EFFORT)
        planned = timings.pop("plan")
        best = min(timings, key=lambda name: timings[name].time_s)
        yield {
            "matrix": problem.name,
            "entries": A.nnz,
            "blocks": len(plan.blocks),
            "formats": " ".join(dict.fromkeys(block.candidate.format for block in plan.blocks)),
            "forecast_s": plan.time_s,
            "plan_s": planned.time_s,
            "best format": best,
            "best_s": timings[best].time_s,
            "gain over best, %": 100 * (timings[best].time_s / planned.time_s - 1),
            "gain over CSR, %": 100 * (timings["csr"].time_s / planned.time_s - 1),
            "noise": max(planned.noise or 0.0, timings[best].noise or 0.0),
        }


@experiment(PANEL)
def adapting(matrices: Matrices = None, products: int = 1000, threads: Threads = 1, turn: int = 50) -> Rows:
    """Time all products of an operator that adapts, against plain CSR and the best format alone.

    The products of the three take turns, some of each. Those of the operator that adapts include conversions
    and trials; the other two are built before, which "best built" counts. A + marks a format that was kept.
    """
    ratios: dict[str, list[float]] = {}
    for problem in named(matrices, ("gallery:poisson2d?n=500", "gallery:circuit?n=200000")):
        A = problem.matrix
        x, out = uniform_vector(A), np.empty(A.shape[0], dtype=A.dtype)
        formats = single_formats(problem, threads)
        timings = measure(formats, Effort(samples=20, most_s=0.2))
        best = min(timings, key=lambda name: timings[name].time_s)
        candidate = next(
            c for c in sc.session(threads=threads).choice(problem).candidates if c.format == best
        )
        _, build_s = timed(lambda A=A, candidate=candidate: bind(A, candidate))
        operator, compile_s = timed(lambda p=problem: sc.compile(p, threads=threads, adapt=True))
        calls: dict[str, Call] = {
            "adapt": lambda operator=operator, x=x, out=out: operator.matvec(x, out),
            "csr": formats["csr"],
            best: formats[best],
        }
        seconds = dict.fromkeys(calls, 0.0)
        for first in range(0, products, turn):
            for name, call in calls.items():
                start = perf_counter()
                for _ in range(min(turn, products - first)):
                    call()
                seconds[name] += perf_counter() - start
        over = {
            "adapt / csr": seconds["adapt"] / seconds["csr"],
            "adapt / best": seconds["adapt"] / seconds[best],
            "adapt / best built": seconds["adapt"] / (seconds[best] + (build_s if best != "csr" else 0.0)),
        }
        for name, ratio in over.items():
            ratios.setdefault(name, []).append(ratio)
        tried = " ".join(
            f"{trial.candidate.format}{'+' if trial.is_kept else '-'}" for trial in operator.tried
        )
        names = {"matrix": problem.name, "csr_s": seconds["csr"] / products, "best": best}
        yield {**names, "tried": tried or "nothing", **over, "to compile_s": compile_s}
    for name, values in ratios.items():
        yield f"{name}: geometric mean {geometric_mean(values):.3f}, worst {max(values):.3f}."


def pagerank_by_hand(A: csr_array[Any], damping: float, epsilon: float) -> Callable[[], tuple[Any, int]]:
    """Return PageRank as one would write it with NumPy and SciPy, its matrix made."""
    degree = np.asarray(A.sum(axis=1)).reshape(-1)
    inverse = np.divide(1.0, degree, out=np.zeros_like(degree), where=degree > 0)
    links = csr_array(A.multiply(inverse[:, None]).T)
    dangling = np.flatnonzero(degree == 0)
    nodes = A.shape[0]

    def run() -> tuple[NDArray[Any], int]:
        p, iteration, change = np.full(nodes, 1 / nodes), 0, 1.0
        while change >= epsilon:
            iteration += 1
            new = damping * (links @ p) + (damping * p[dangling].sum() + 1 - damping) / nodes
            change = np.abs(new - p).sum()
            p = new
        return p, iteration

    return run


def networkx_pagerank(A: csr_array[Any], damping: float, epsilon: float) -> Callable[[], NDArray[Any]] | None:
    """Return networkx's PageRank, its graph made; None where it is not installed."""
    try:
        import networkx
    except ImportError:
        return None
    graph = networkx.from_scipy_sparse_array(A, create_using=networkx.DiGraph)
    # networkx multiplies its tolerance by the number of nodes.
    options = {"alpha": damping, "max_iter": 1000, "tol": epsilon / A.shape[0]}
    return lambda: np.fromiter(networkx.pagerank(graph, **options).values(), dtype=float)


@experiment(PANEL)
def pagerank(matrices: Matrices = None, runs: int = 7, threads: Threads = 1) -> Rows:
    """Time PageRank against networkx and against a loop around SciPy's product, with one tolerance.

    Ours has the operator at hand, as the loop by hand has its transposed and normalised matrix, and networkx
    its graph. Ratios are medians over the runs, of the other's time over ours in the same turn: above 1 ours
    is faster.
    """
    from sparsecast.operators.applications.defaults import DAMPING, EPSILON
    from sparsecast.operators.applications.pagerank import links, most_iterations
    from sparsecast.operators.applications.pagerank import pagerank as pagerank_of

    for problem in named(matrices, ("gallery:rmat?scale=14",)):
        A = problem.matrix
        start = perf_counter()
        graph = links(A)
        expected = most_iterations(DAMPING, EPSILON)
        plan = sc.plan(Problem.of(graph.matrix), iterations=expected, threads=threads)
        operator = sc.compile(graph.matrix, plan)
        prepare_s = perf_counter() - start
        ours = pagerank_of(operator, graph.dangling, graph.inverse_weight)  # compiles the loops
        by_hand = pagerank_by_hand(A, DAMPING, EPSILON)
        difference = float(np.abs(ours.ranks - by_hand()[0]).sum())
        calls: dict[str, Callable[[], Any]] = {
            "ours": lambda o=operator, g=graph: pagerank_of(o, g.dangling, g.inverse_weight),
            "by hand": by_hand,
        }
        peer = networkx_pagerank(A, DAMPING, EPSILON)
        if peer is not None:
            calls["networkx"] = peer
        seconds = alternated(calls, runs)
        yield {
            "graph": problem.name,
            "edges": A.nnz,
            "format": "+".join(dict.fromkeys(block.candidate.format for block in plan.blocks)),
            "iterations": ours.iterations,
            **{f"{name}_s": median(values) for name, values in seconds.items()},
            **{
                f"{name} / ours": median(b / a for a, b in zip(seconds["ours"], values, strict=True))
                for name, values in seconds.items()
                if name != "ours"
            },
            "to prepare_s": prepare_s,
            "difference of ranks": difference,
        }
