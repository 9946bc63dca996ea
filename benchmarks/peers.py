"""Our products against other libraries, and operators that adapt against single formats."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import geometric_mean
from time import perf_counter, sleep
from typing import Annotated, Any

import numpy as np
import typer
from scipy.sparse import csr_array, tril

import sparsecast as sc
from experiment import (
    MOST_THREADS,
    Matrices,
    Row,
    Rows,
    Threads,
    checked_calls,
    checked_product,
    experiment,
    in_words,
    mean_and_worst,
    named,
    timed,
)
from sparsecast.devices.binding import bind
from sparsecast.devices.product_timer import ReferenceProduct, right_hand_side
from sparsecast.errors import FormatError, MissingLibraryError
from sparsecast.formats.libraries import LIBRARIES
from sparsecast.formats.libraries.library import PRODUCTS
from sparsecast.matrices.problem import Problem
from sparsecast.measuring.timing import Call, Effort, HostClock, Timing, measure
from sparsecast.system.tabular import grouped
from sparsecast.system.texts import counted

PANEL = "Other libraries"

#: Seconds after which the threads of MKL have stopped spinning.
SPIN_S = 0.25

#: Seconds of untimed calls before the samples of one library, and of a sample, and samples in a row.
_AWAKE_S, _SAMPLE_S, _SAMPLES = 0.01, 0.001, 4


class Kept:
    """Rows that are written to a file as they come, if there is one; those that it has are read."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        lines = path.read_text().splitlines() if path and path.exists() else []
        self.rows: list[dict[str, Any]] = [json.loads(line) for line in lines]

    def add(self, key: Mapping[str, Any], measured: Callable[[], dict[str, Any]]) -> None:
        """Measure a row, unless one with these values is there."""
        if any(key.items() <= row.items() for row in self.rows):
            return
        self.rows.append(measured())
        if self._path:
            with self._path.open("a") as stream:
                stream.write(json.dumps(self.rows[-1]) + "\n")


def in_turn(calls: Mapping[str, Call], rounds: int, pause_s: float) -> dict[str, Timing]:
    """Return the Timings of calls that take turns, with a pause after the last one.

    Before its samples a call is repeated untimed, until the threads of the library before it are asleep and
    its own are awake. Libraries whose threads spin for longer go last, before the pause.
    """
    clock, counts = HostClock(), {}
    for name, call in calls.items():
        call()
        counts[name] = max(1, round(_SAMPLE_S / min(clock.seconds(call, 1) for _ in range(5))))
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            end = perf_counter() + _AWAKE_S
            while perf_counter() < end:
                call()
            count = counts[name]
            samples[name] += [clock.seconds(call, count) / count for _ in range(_SAMPLES)]
        sleep(pause_s)
    return {name: Timing.of(tuple(values)) for name, values in samples.items()}


def contest(problem: Problem, key: Row, rounds: int) -> dict[str, Any]:
    """Return the times of our plan, our CSR and every library that can be called, sampled in turn."""
    A, threads = problem.matrix, key["threads"]
    x = right_hand_side(A.shape[1], A.dtype.name)
    out = np.empty(A.shape[0], dtype=A.dtype)
    reference = ReferenceProduct.of(A, x)
    plan = sc.plan(problem, products=PRODUCTS, threads=threads)
    operator = sc.compile(problem, plan)
    reference.check(operator.matvec(x, out), "the plan")
    calls: dict[str, Call] = {"plan": lambda: operator.matvec(x, out)}
    calls["our CSR"] = checked_product(A, "csr", threads)
    missing, peers = {}, []
    for name in sorted(LIBRARIES.names(), key=lambda name: (name == "mkl", name)):  # whose threads spin
        library, y = LIBRARIES.get(name), np.full_like(out, np.nan)
        try:
            library.refuse_missing()
            library.refuse_types(A.dtype.name, 8 * A.indices.itemsize, 1)
            product = library.from_csr(A).on_threads(threads)
            product(x, y)
            reference.check(y, library.title)
        except (MissingLibraryError, FormatError) as error:
            missing[library.title] = str(error)
        else:
            calls[library.title] = partial(product, x, y)
            peers.append(library.title)
    timings = in_turn(calls, rounds, SPIN_S if threads > 1 and "MKL" in calls else 0.0)
    seconds = {name: timing.time_s for name, timing in timings.items()}
    peer, ours_s = min(peers, key=seconds.__getitem__), seconds.pop("plan")
    return {
        **key,
        "entries": A.nnz,
        "choice": " ".join(dict.fromkeys(in_words(block.candidate) for block in plan.blocks)),
        **{"ours_s": ours_s, "peer": peer, "peer_s": seconds[peer], "ratio": seconds[peer] / ours_s},
        "noise": max(timings[name].noise or 0.0 for name in ("plan", peer)),
        **{"seconds": seconds, "missing": missing},
    }


def randomised(A: csr_array[Any]) -> csr_array[Any]:
    """Return the matrix with random values at its entries; one that equals its transpose still does."""
    R = A.copy()
    R.data = np.random.default_rng(3).uniform(-1.0, 1.0, A.nnz)
    if A.shape[0] != A.shape[1] or (A != A.T).nnz:
        return R
    lower = tril(R, format="csr")
    return csr_array(lower + tril(R, -1, format="csr").T)


def verdicts(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what rows come to, by their values and threads."""
    for (values, threads), those in sorted(grouped(rows, lambda r: (r["values"], r["threads"])).items()):
        worst = min(those, key=lambda row: row["ratio"])
        mean = geometric_mean(row["ratio"] for row in those)
        below = sum(row["ratio"] < 0.97 for row in those)
        yield (
            f"Values {values}, {counted(threads, 'thread')}: geometric mean {mean:.2f} over {len(those)} "
            f"matrices, worst {worst['ratio']:.2f} ({worst['matrix']}), {below} below 0.97."
        )
    for threads, those in sorted(grouped(rows, lambda row: row["threads"]).items()):
        ratios = [
            row["seconds"]["our CSR"] / row["seconds"]["SciPy"] for row in those if "SciPy" in row["seconds"]
        ]
        if ratios:
            yield from mean_and_worst({f"Our CSR over SciPy's, {counted(threads, 'thread')}": ratios})
    short = [
        row["seconds"]["PyTorch"] / row["ours_s"]
        for row in rows
        if row["threads"] > 1 and "PyTorch" in row["seconds"] and 1e-4 <= row["ours_s"] <= 2.5e-4
    ]
    if short:
        yield (
            f"Products of 100 to 250 us on several threads, against PyTorch: geometric mean "
            f"{geometric_mean(short):.2f} over {len(short)} comparisons, worst {min(short):.2f}, "
            f"{sum(ratio < 0.97 for ratio in short)} below 0.97."
        )
    yield from sorted({f"{name}: {why}" for row in rows for name, why in row["missing"].items()})


@experiment(PANEL)
def peers(
    matrices: Matrices = None,
    threads: Annotated[list[int] | None, typer.Option(min=1, help="Once for each number.")] = None,
    least: Annotated[int, typer.Option(help="Non-zeros of the smallest matrix.")] = 300_000,
    rounds: Annotated[int, typer.Option(min=1)] = 15,
    lines: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Add each row, as JSON, at once; rows that it has are kept."),
    ] = None,
) -> Rows:
    """Time the plan for a million products against every library, values as given and random.

    A ratio is the best library's time over ours: above 1 we are faster. Without --threads, one thread and all
    are compared; SciPy knows one. Libraries that are missing, and why, stand below the table.
    """
    kept = Kept(lines)
    for problem in named(matrices, ("poisson3d?n=60", "rmat?scale=16")):
        A = problem.matrix
        if A.nnz < least or A.dtype.kind == "c":
            continue
        random = Problem.of(randomised(A), problem.name)
        for values, asked in {"as given": problem, "random": random}.items():
            for count in threads or dict.fromkeys((1, MOST_THREADS)):
                key = {"matrix": problem.name, "values": values, "threads": count}
                kept.add(key, partial(contest, asked, key, rounds))
    for row in kept.rows:
        yield {name: value for name, value in row.items() if name not in ("seconds", "missing")}
    yield from verdicts(kept.rows)


@experiment(PANEL)
def adapting(matrices: Matrices = None, products: int = 1000, threads: Threads = 1, turn: int = 50) -> Rows:
    """Time all products of an operator that adapts, against plain CSR and the best candidate alone.

    The products of the three take turns, some of each. Those of the operator that adapts include conversions
    and trials; the other two are built before, which "best built" counts. A + marks a format that was kept.
    """
    ratios: dict[str, list[float]] = {}
    for problem in named(matrices, ("poisson2d?n=500", "circuit?n=200000")):
        A = problem.matrix
        alone = checked_calls(A, sc.session(threads=threads).choice(problem).candidates)
        timings = measure(alone, Effort(samples=20, most_s=0.2))
        best = min(timings, key=lambda candidate: timings[candidate].time_s)
        plain = next(c for c in alone if c.format == "csr" and not c.parameters)
        _, build_s = timed(partial(bind, A, best))
        operator, compile_s = timed(partial(sc.compile, problem, threads=threads, adapt=True))
        x = right_hand_side(A.shape[1], A.dtype.name)
        adapts = partial(operator.matvec, x, np.empty(A.shape[0], dtype=A.dtype))
        calls = {"adapt": adapts, "csr": alone[plain], "best": alone[best]}
        seconds = dict.fromkeys(calls, 0.0)
        for first in range(0, products, turn):
            for name, call in calls.items():
                seconds[name] += HostClock().seconds(call, min(turn, products - first))
        over = {
            "adapt / csr": seconds["adapt"] / seconds["csr"],
            "adapt / best": seconds["adapt"] / seconds["best"],
            "adapt / best built": seconds["adapt"] / (seconds["best"] + (build_s if best != plain else 0.0)),
        }
        for name, ratio in over.items():
            ratios.setdefault(name, []).append(ratio)
        tried = " ".join(
            f"{trial.candidate.format}{'+' if trial.is_kept else '-'}" for trial in operator.tried
        )
        names = {"matrix": problem.name, "csr_s": seconds["csr"] / products, "best": in_words(best)}
        yield {**names, "tried": tried or "nothing", **over, "to compile_s": compile_s}
    yield from mean_and_worst(ratios)
