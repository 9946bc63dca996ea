"""Kernels and the rules that choose among them: row loops, gathers, storage, bandwidth, several vectors."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from scipy.sparse import csr_array

import sparsecast as sc
from experiment import (
    MOST_THREADS,
    Matrices,
    Rows,
    Threads,
    checked_calls,
    experiment,
    in_words,
    named,
    rule_of,
)
from sparsecast.devices import DEVICES
from sparsecast.devices.binding import bind, prepared
from sparsecast.devices.cpu.vector_code import gathers_win
from sparsecast.devices.product_timer import right_hand_side
from sparsecast.errors import InputError
from sparsecast.features.analysis import structure
from sparsecast.machines.machine import detect
from sparsecast.matrices.synthesis import varied_matrix
from sparsecast.measuring.references import memory_read
from sparsecast.measuring.timing import Call, Effort, Timing, measure

PANEL = "Kernels"
EFFORT = Effort(samples=9, sample_s=0.004)

Dtype = Annotated[str, typer.Option(help="float64 or float32.")]
Lengths = NDArray[np.int64]


def noise_of(timings: Mapping[Any, Timing]) -> float:
    """Return the worst noise of some timings."""
    return max(timing.noise or 0.0 for timing in timings.values())


def _mixed(share: float, generator: np.random.Generator, rows: int, mean: int) -> Lengths:
    return np.where(generator.random(rows) < share, generator.integers(0, 2 * mean + 1, rows), mean)


#: Row lengths by kind: of a generator, a number of rows and their mean length.
LENGTHS: dict[str, Callable[[np.random.Generator, int, int], Lengths]] = {
    "constant": lambda generator, rows, mean: np.full(rows, mean),
    "alternating": lambda generator, rows, mean: mean + max(mean // 2, 1) * (2 * (np.arange(rows) % 2) - 1),
    **{f"mixed {share}": partial(_mixed, share) for share in (0.1, 0.2, 0.35, 0.5)},
    "plus or minus 1": lambda generator, rows, mean: mean + generator.integers(-1, 2, rows),
    "uniform": lambda generator, rows, mean: generator.integers(0, 2 * mean + 1, rows),
    "geometric": lambda generator, rows, mean: np.minimum(
        generator.geometric(1.0 / (mean + 1), rows) - 1, 256
    ),
}


def rows_in_a_band(lengths: Lengths, dtype: str, band: int = 256) -> csr_array[Any]:
    """Return a matrix with these row lengths whose columns follow one another within a band."""
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    within = np.arange(indptr[-1]) - np.repeat(indptr[:-1], lengths)
    indices = (np.repeat(np.arange(len(lengths)) % band, lengths) + within).astype(np.int32)
    data = np.random.default_rng(1).uniform(-1.0, 1.0, indptr[-1]).astype(dtype)
    return csr_array((data, indices, indptr), shape=(len(lengths), 2 * band))


def synthetic_rows(nnz: int, dtype: str) -> Iterator[tuple[str, csr_array[Any]]]:
    """Yield matrices of all LENGTHS and some mean lengths with about so many entries."""
    for mean in (2, 3, 8, 20, 40):
        for kind, draw in LENGTHS.items():
            yield kind, rows_in_a_band(draw(np.random.default_rng(0), max(nnz // mean, 1), mean), dtype)


@experiment(PANEL)
def csr_loops(
    matrices: Matrices = None, dtype: Dtype = "float64", nnz: int = 400_000, threads: Threads = 1
) -> Rows:
    """Time the row loops of CSR, by default on synthetic rows: what its rule and MISPREDICTED_SHARE rest on.

    Their columns lie in a band, so that x comes from the nearest cache. A ratio is the time over that of
    `unrolled`. A star stands where another loop was faster by more than the noise and a twentieth.
    """
    variants = DEVICES.get("cpu").kernels.get("csr").variants_of(dtype)
    real = ((problem.name, problem.matrix.astype(dtype)) for problem in named(matrices))
    for name, A in real if matrices else synthetic_rows(nnz, dtype):
        rule, lengths = rule_of(A, "csr", threads), structure(A).row_lengths
        timings = measure(checked_calls(A, [replace(rule, kernel=variant) for variant in variants]), EFFORT)
        seconds = {candidate.kernel: timing.time_s for candidate, timing in timings.items()}
        noise = noise_of(timings)
        is_slow = seconds[rule.kernel] > min(seconds.values()) * (1.05 + noise)
        yield {
            "row lengths": name,
            "mean": A.nnz / A.shape[0],
            "mispredicted": lengths.mispredicted / A.shape[0],
            "unrolled, ns per entry": 1e9 * seconds["unrolled"] / A.nnz,
            **{kernel: seconds[kernel] / seconds["unrolled"] for kernel in variants if kernel != "unrolled"},
            "chosen": rule.kernel + " *" * is_slow,
            "noise": noise,
        }


@experiment(PANEL)
def gathers() -> Rows:
    """Time vectors of x, gathered or read in turn, against single reads: as in devices/cpu/vector_code.py.

    One thread. A ratio is the time without vectors over that with them: above 1 vectors win. Where gathers
    win over vectors that are read in turn, the processor belongs to those that use them.
    """
    without = {"csr": "unrolled", "sell": "chunks"}
    shapes = (
        *((100_000, 4, 0.0), (50_000, 8, 0.0), (30_000, 14, 0.1), (20_000, 20, 1.0)),
        *((8_000, 50, 0.0), (2_000, 200, 1.0), (200_000, 20, 0.01), (300_000, 12, 1.0)),
    )
    for rows, mean, reach in shapes:
        row: dict[str, Any] = {"rows": rows, "mean": mean, "reach": reach}
        for dtype in ("float64", "float32"):
            A = varied_matrix(rows, mean, "mixed", reach, seed=0).astype(dtype)
            candidates = [
                replace(rule_of(A, name), kernel=kernel)
                for name, single in without.items()
                for kernel in (single, "gathered", "vectors")
            ]
            timings = measure(checked_calls(A, candidates), Effort(samples=9, sample_s=0.005))
            seconds = {(each.format, each.kernel): timing.time_s for each, timing in timings.items()}
            for (name, kernel), time_s in seconds.items():
                if kernel != without[name]:
                    row[f"{name.upper()} {kernel} {dtype}"] = seconds[name, without[name]] / time_s
            row[f"{dtype} noise"] = noise_of(timings)
        yield row
    yield f"Gathers are {'' if gathers_win(detect()) else 'not '}used on this processor."


@experiment(PANEL)
def formats(matrices: Matrices = None) -> Rows:
    """Time every candidate with one thread and all, its share of the bandwidth, and eight vectors at once.

    A share is the bytes that a product streams a second over those of a plain read of as many bytes with as
    many threads. "over full" is the time of full storage over that of narrow storage, in alternation, with
    one thread and all. "8 vectors" is how many times faster they are than eight products, with one thread.
    """
    vectors, counts = 8, {"one": 1, "all": MOST_THREADS}
    defaults = (
        *("banded?n=500000&half_bandwidth=12", "poisson2d?n=1200"),
        *("poisson3d?n=100&points=27", "elasticity3d?n=44"),
    )
    for problem in named(matrices, defaults):
        A, full = problem.matrix, {}
        x, out = right_hand_side(A.shape[1], A.dtype.name), np.empty(A.shape[0], dtype=A.dtype)
        X, Y = np.ones((A.shape[1], vectors), A.dtype), np.empty((A.shape[0], vectors), A.dtype)
        for candidate in sc.session(threads=MOST_THREADS).choice(A).candidates:
            ready = prepared(A, candidate.dtype, candidate.index_bits)
            try:
                bounds = {name: bind(ready, replace(candidate, threads=n)) for name, n in counts.items()}
            except InputError as error:
                print(f"left out: {error}", file=sys.stderr)
                full = {}
                continue
            is_beside_full = bool(candidate.parameters and full)  # which is the candidate before
            traffic, several = bounds["one"].matrix.traffic(), bounds["one"].multivector
            calls: dict[str, Call] = {f"{name} read": memory_read(traffic, n) for name, n in counts.items()}
            calls |= {name: partial(bound.product, x, out) for name, bound in bounds.items()}
            if is_beside_full:
                calls |= {f"full {name}": partial(bound.product, x, out) for name, bound in full.items()}
            if several is not None:
                calls["several"] = partial(several, X, Y)
            full = bounds
            timings = measure(calls, Effort(samples=9, sample_s=0.01))
            time_s = {name: timing.time_s for name, timing in timings.items()}
            yield {
                "matrix": problem.name,
                "candidate": in_words(candidate),
                "MB": traffic / 1e6,
                "1 thread_s": time_s["one"],
                f"{MOST_THREADS} threads_s": time_s["all"],
                "times as fast": time_s["one"] / time_s["all"],
                "1 thread share": time_s["one read"] / time_s["one"],
                f"{MOST_THREADS} threads share": time_s["all read"] / time_s["all"],
                "over full": time_s["full one"] / time_s["one"] if is_beside_full else None,
                "over full, all": time_s["full all"] / time_s["all"] if is_beside_full else None,
                "8 vectors": vectors * time_s["one"] / time_s["several"] if several is not None else None,
                "noise": noise_of(timings),
            }
