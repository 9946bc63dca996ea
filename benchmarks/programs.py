"""Programs that use SciPy: the cost of counting their products, and savings that are forecast and had."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any

import numpy as np
import typer

import sparsecast as sc
from experiment import Rows, experiment

PANEL = "Costs"

EXAMPLES = Path(__file__).parent.parent / "examples"

#: Programs of the examples, with arguments that make runs of some seconds.
PROGRAMS = {
    "cg_with_scipy.py": ("50", "24"),
    "pagerank_by_hand.py": ("200000", "1500"),
    "multigrid_with_pyamg.py": ("300", "20"),
}

#: Points along an edge of the grids whose products are counted: 20 us to 1 ms.
SIDES = (40, 60, 80, 120, 200, 400)


@experiment(PANEL)
def watch_overhead(
    rounds: int = 30, seconds: Annotated[float, typer.Option(help="Of a turn.")] = 0.01
) -> Rows:
    """Time SciPy's products alone and while they are counted, in turn; the least of all turns counts."""
    for side in SIDES:
        A = sc.gallery("poisson2d", n=side)
        x = np.ones(A.shape[1])

        def turn(count: int, A: Any = A, x: Any = x) -> float:
            start = perf_counter()
            for _ in range(count):
                A @ x
            return (perf_counter() - start) / count

        products = max(1, round(seconds / turn(10)))
        alone, counted = [], []
        for _ in range(rounds):
            alone.append(turn(products))
            with sc.watch():
                turn(2)  # a matrix is looked at when it is new
                counted.append(turn(products))
        alone_s, counted_s = min(alone), min(counted)
        yield {
            "entries": A.nnz,
            "product_s": alone_s,
            "counted_s": counted_s,
            "added_s": max(0.0, counted_s - alone_s),
            "added share": counted_s / alone_s - 1,
        }


@experiment(PANEL)
def programs(rounds: int = 1, threads: int | None = None) -> Rows:
    """Run three programs, counted and with --apply: the forecast saving beside the one that is had."""
    for program, arguments in PROGRAMS.items():
        options = [] if threads is None else ["--threads", str(threads)]
        plain, applied = [], []
        for _ in range(rounds):
            plain.append(_run(*options, str(EXAMPLES / program), *arguments))
            applied.append(_run(*options, "--apply", str(EXAMPLES / program), *arguments))
        run_s, applied_s = (statistics.median(r["run_s"] for r in runs) for runs in (plain, applied))
        forecast_s = statistics.median(r["saving_s"] or 0.0 for r in plain)
        yield {
            "program": program,
            "run_s": run_s,
            "products_s": statistics.median(r["time_s"] for r in plain),
            "forecast saving_s": forecast_s,
            "from_s": statistics.median(r["saving_low_s"] or 0.0 for r in plain),
            "to_s": statistics.median(r["saving_high_s"] or 0.0 for r in plain),
            "saved_s": run_s - applied_s,
            "counted as saved_s": statistics.median(r["saving_s"] or 0.0 for r in applied),
            "difference": forecast_s / (run_s - applied_s) - 1,
            "differs by": max(r["error"] or 0.0 for r in applied),
        }
    yield "Saved: the time of the run, less that with --apply, each without what comes before and after."


def _run(*arguments: str) -> dict[str, Any]:
    """Return the document of a run.

    BLAS has one thread: where another program runs, its threads wait for each other.
    """
    line = [str(Path(sys.executable).parent / "sparsecast"), "run", "--json", "--anyway", *arguments]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(line, capture_output=True, text=True, check=True, env=environment)
    return dict(json.loads(done.stdout.splitlines()[-1]))
