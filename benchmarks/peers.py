"""Our products against SciPy, MKL, torch and networkx, and plans against single formats."""

from __future__ import annotations

import ctypes
import importlib
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

# One OpenMP for MKL and our own kernels: two would wait for each other's idle threads.
os.environ.setdefault("MKL_THREADING_LAYER", "GNU")

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

import sparsecast as sc
from experiment import (
    Matrices,
    Rows,
    Threads,
    alternated,
    checked_product,
    chosen_variant,
    experiment,
    geometric_mean,
    most_threads,
    named,
    timed,
    uniform_vector,
)
from sparsecast import api
from sparsecast.devices.binding import bind, prepared
from sparsecast.devices.reference import ReferenceProduct
from sparsecast.errors import InputError, ProfileError
from sparsecast.matrices.problem import Problem
from sparsecast.measuring.timing import DEFAULT_EFFORT, Call, Effort, measure

PANEL = "Other libraries"

#: Products that MKL is told to expect, and that plans are for.
PRODUCTS = 10_000


class MissingPeerError(Exception):
    """A library is not installed, or does not take the matrix; the message says which."""


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


def scipy_call(A: csr_array[Any], x: NDArray[Any], threads: int) -> tuple[Call, Call]:
    """Return the product and its result."""
    return (lambda: A @ x), (lambda: A @ x)


def torch_call(A: csr_array[Any], x: NDArray[Any], threads: int) -> tuple[Call, Call]:
    """Return the product of a CSR tensor and its result."""
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise MissingPeerError("torch is not installed: pip install 'sparsecast[peers]'") from error
    torch.set_num_threads(threads)
    # torch says at the first CSR tensor of a process that they are in beta state.
    warnings.filterwarnings("ignore", message="Sparse CSR tensor support", category=UserWarning)
    parts = (torch.from_numpy(part) for part in (A.indptr, A.indices, A.data))
    matrix = torch.sparse_csr_tensor(*parts, size=A.shape, check_invariants=False)
    vector = torch.from_numpy(x)
    return (lambda: matrix @ vector), (lambda: (matrix @ vector).numpy())


class Description(ctypes.Structure):
    """MKL's struct matrix_descr."""

    _fields_ = (("type", ctypes.c_int), ("mode", ctypes.c_int), ("diag", ctypes.c_int))


NON_TRANSPOSE, GENERAL = 10, 20


def mkl_library() -> ctypes.CDLL:
    """Load MKL from where pip puts it, or from the system."""
    candidates = [*sorted(Path(sys.prefix, "lib").glob("libmkl_rt.so*")), Path("libmkl_rt.so")]
    for path in candidates:
        try:
            return ctypes.CDLL(str(path))
        except OSError:
            continue
    raise MissingPeerError("MKL is not installed: pip install 'sparsecast[peers]'")


def mkl_call(A: csr_array[Any], x: NDArray[Any], threads: int) -> tuple[Call, Call]:
    """Return the inspector-executor product, hinted and optimised, and its result."""
    if A.dtype != np.float64 or A.indices.dtype != np.int32:
        raise MissingPeerError("MKL is called for float64 values and 32-bit indices")
    mkl = mkl_library()
    mkl.MKL_Set_Num_Threads(threads)
    handle, description = ctypes.c_void_p(), Description(GENERAL, 0, 0)
    pointer = ctypes.c_void_p
    ends = A.indptr[1:].ctypes.data_as(pointer)
    arrays = (part.ctypes.data_as(pointer) for part in (A.indices, A.data))
    starts = A.indptr.ctypes.data_as(pointer)
    status = mkl.mkl_sparse_d_create_csr(ctypes.byref(handle), 0, *A.shape, starts, ends, *arrays)
    status |= mkl.mkl_sparse_set_mv_hint(handle, NON_TRANSPOSE, description, PRODUCTS)
    status |= mkl.mkl_sparse_optimize(handle)
    if status:
        raise MissingPeerError(f"MKL refused the matrix with status {status}")
    y = np.empty(A.shape[0])
    one, zero = ctypes.c_double(1.0), ctypes.c_double(0.0)
    in_out = x.ctypes.data_as(pointer), y.ctypes.data_as(pointer)

    def product() -> None:
        mkl.mkl_sparse_d_mv(NON_TRANSPOSE, one, handle, description, in_out[0], zero, in_out[1])

    def result() -> NDArray[Any]:
        product()
        return y

    return product, result


PEERS = {"SciPy": scipy_call, "MKL": mkl_call, "torch": torch_call}


def single_formats(problem: Problem, threads: int) -> dict[str, Call]:
    """Return the checked product in every format that suits a matrix, in the kernel that the rule chooses."""
    A, calls = problem.matrix, {}
    x, out = uniform_vector(A), np.empty(A.shape[0], dtype=A.dtype)
    reference = ReferenceProduct.of(A, x)
    for candidate in api.choice(problem, threads=threads).candidates:
        try:
            product = bind(prepared(A, candidate.dtype, candidate.index_bits), candidate).product
        except InputError as error:
            print(f"left out: {error}", file=sys.stderr)
            continue
        product(x, out)
        reference.check(out, candidate.format)
        calls[candidate.format] = lambda product=product: product(x, out)
    return calls


@experiment(PANEL)
def peers(matrices: Matrices = None, threads: Threads = 1) -> Rows:
    """Time every format and the plan against SciPy, MKL and torch, with as many threads; SciPy knows one.

    A ratio is the best peer's time over ours: above 1 we are faster. MKL is called through its
    inspector-executor interface, with the hint that many products will follow; torch through its CSR tensors.
    Libraries come with the extra `peers`; one that is missing is said below the table.
    """
    ratios: dict[str, list[float]] = {}
    missing = set()
    for problem in named(matrices, ("gallery:poisson3d?n=60", "gallery:rmat?scale=16")):
        A = problem.matrix
        x, out = uniform_vector(A), np.empty(A.shape[0], dtype=A.dtype)
        reference, ours = ReferenceProduct.of(A, x), single_formats(problem, threads)
        others: dict[str, Call] = {}
        for name, make in PEERS.items():
            try:
                others[name], result = make(A, x, threads)
                reference.check(np.asarray(result()), name)
            except MissingPeerError as error:
                missing.add(f"{name}: {error}")
        planned: dict[str, Call] = {}
        try:
            operator = sc.compile(problem, sc.plan(problem, iterations=PRODUCTS, threads=threads))
            planned["plan"] = lambda operator=operator, x=x, out=out: operator.matvec(x, out)
        except ProfileError as error:
            missing.add(f"plan: {error}")
        timings = measure({**ours, **others, **planned}, DEFAULT_EFFORT)
        seconds = {name: timing.time_s for name, timing in timings.items()}
        best, best_peer = (min(calls, key=seconds.__getitem__) for calls in (ours, others))
        row = {"best / ours": seconds[best_peer] / seconds[best]}
        if "plan" in seconds:
            row["best / plan"] = seconds[best_peer] / seconds["plan"]
        if "MKL" in seconds:
            row["MKL / our CSR"] = seconds["MKL"] / seconds["csr"]
        for name, ratio in row.items():
            ratios.setdefault(name, []).append(ratio)
        names = {"matrix": problem.name, "entries": A.nnz, "ours": best, "ours_s": seconds[best]}
        noise = max(timings[best].noise or 0.0, timings[best_peer].noise or 0.0)
        yield {**names, "peer": best_peer, "peer_s": seconds[best_peer], **row, "noise": noise}
    for name, values in ratios.items():
        yield f"{name}: geometric mean {geometric_mean(values):.2f}, worst {min(values):.2f}."
    yield from sorted(missing)


@experiment(PANEL)
def plan_gain(matrices: Matrices = None, iterations: int = 100_000, threads: Threads = 1) -> Rows:
    """Time the planned operator against every single format: a gain is the other's time over the plan's."""
    for problem in named(matrices, ("gallery:poisson2d?n=500", "gallery:circuit?n=200000")):
        A, plan = problem.matrix, sc.plan(problem, iterations=iterations, threads=threads)
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
        candidate = next(c for c in api.choice(problem, threads=threads).candidates if c.format == best)
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
    from sparsecast.operators.applications.graphs import links
    from sparsecast.operators.applications.pagerank import most_iterations
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
