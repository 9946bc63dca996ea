"""Errors of the forecasts of whole runs of PageRank and CG, given the iterations that there were.

    python benchmarks/solver_costs.py [--budget S] [--threads N] [--cg-iterations N] [--json] [MATRIX...]

MATRIX is a file; without one, the square ones of SPARSECAST_CORPUS above 100,000 non-zeros are taken, the
smallest first, until the seconds of --budget are over. Matrices with entries below 0 are no graphs, and are
run by their absolute values. CG is run on the symmetric ones, for a fixed number of iterations at most.
Most of them are not positive definite: their diagonal is then replaced by a little more than the sum of the
absolute values of its row, which changes no other entry. An error is signed, and above 0 where the forecast
was too long. Beside it stand the error of the product within the run, and where it comes from: the forecast
of the product as Records are measured, alone and at full speed of the cores; a product alone at the speed
that there is; and the product within a run, between loops over vectors. And what these loops take of a run,
and the iterations of PageRank over those that were expected, and over what epsilon and the damping factor
bound them by.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, median
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.sparse import csr_array, diags_array

from sparsecast import api
from sparsecast.errors import InputError
from sparsecast.matrices.problem import Problem
from sparsecast.matrices.reading import matrix_files
from sparsecast.measuring.core_speed import core_speed
from sparsecast.measuring.timing import measure
from sparsecast.operators.applications.application import PRODUCT
from sparsecast.operators.applications.defaults import DAMPING, EPSILON
from sparsecast.operators.applications.pagerank import most_iterations
from sparsecast.operators.block_operator import Operator
from sparsecast.reports.tables import time
from sparsecast.results.plan import Plan

LEAST_NNZ = 100_000
#: Stored entries of a file from which on it is read to be looked at: half, where one triangle is stored.
_LEAST_STORED = LEAST_NNZ // 2


@dataclass(frozen=True)
class Row:
    """A run beside its forecast; `expected` and `is_within` tell of the iterations where none were given.

    Of the product: `alone_error` is the forecast's where the product alone is measured as Records are,
    `usual_over_full` what it takes longer without waiting for full speed of the cores, and
    `within_over_usual` what it takes longer within a run.
    """

    application: str
    matrix: str
    nnz: int
    format: str
    iterations: int
    expected: int | None
    is_within: bool | None
    forecast_s: float
    time_s: float
    error: float
    product_error: float
    alone_error: float
    usual_over_full: float
    within_over_usual: float
    loops_share: float


def candidates() -> list[Path]:
    """Return the files of the corpus that may be large enough and square by their headers, smallest first."""
    folder = os.environ.get("SPARSECAST_CORPUS")
    if folder is None:
        raise InputError("SPARSECAST_CORPUS is not set: expected a folder of matrices; set it, or name files")
    found = []
    for path in matrix_files(folder):
        if path.name.endswith(".mtx.gz") and (stored := _square_stored(path)) >= _LEAST_STORED:
            found.append((stored, path))
    return [path for _, path in sorted(found)]


def _square_stored(path: Path) -> int:
    """Return the stored entries that the header of a file claims, 0 where it is not square."""
    with gzip.open(path, "rt", errors="replace") as file:
        for line in file:
            if not line.startswith("%"):
                rows, cols, *stored = map(int, line.split())
                return stored[0] if rows == cols and stored else 0
    return 0


def rows_of(path: Path, threads: int | None, cg_iterations: int) -> Iterator[Row]:
    """Measure the runs of one matrix, real, square and large enough."""
    problem = api.read_matrix(path)
    A = problem.matrix
    if A.shape[0] != A.shape[1] or A.nnz < LEAST_NNZ or A.dtype.kind == "c":
        return
    graph = csr_array((np.abs(A.data), A.indices, A.indptr), shape=A.shape)
    yield _row("pagerank", Problem.of(graph, problem.name), threads, None)
    if problem.structure.symmetry.triangle_nnz is not None:
        yield _row("cg", Problem.of(dominant(A), problem.name), threads, cg_iterations)


def dominant(A: csr_array[Any]) -> csr_array[Any]:
    """Return a symmetric matrix with a diagonal that makes it positive definite, just so."""
    sizes = np.asarray(abs(A).sum(axis=1)).reshape(-1) - np.abs(A.diagonal())
    least = 1e-6 * sizes.max() or 1.0
    return csr_array(A + diags_array(sizes + least - A.diagonal()))


def _row(application: str, problem: Problem, threads: int | None, iterations: int | None) -> Row:
    question = api.application_question(application, problem)
    cost = api.application_cost(question, threads=threads, iterations=iterations)
    run = api.run_application(question, cost.plan, most=iterations)
    if run.stop.startswith("breakdown"):
        raise InputError(f"{problem.name}: {run.stop}")
    error, known = run.error(cost), cost.iterations
    product_s = run.loops[PRODUCT]
    full_s, usual_s = alone(api.compile(question.problem, cost.plan), cost.plan)
    return Row(
        application,
        problem.name,
        int(problem.matrix.nnz),
        cost.format,
        run.iterations,
        known.expected if iterations is None else None,
        known.low <= run.iterations <= known.high if iterations is None else None,
        run.time_s * (1 + error),
        run.time_s,
        error,
        run.errors(cost)[PRODUCT].relative,
        cost.plan.time_s / full_s - 1,
        usual_s / full_s - 1,
        product_s / usual_s - 1,
        1 - product_s * run.iterations / run.time_s,
    )


def alone(op: Operator, plan: Plan) -> tuple[float, float]:
    """Return the seconds of a product alone: at full speed of the cores, and the mean at any speed."""
    x = np.ones(op.shape[1], dtype=op.dtype)
    out = op.matvec(x)
    threads = max(block.candidate.threads for block in plan.blocks)
    calls = {"product": lambda: op.matvec(x, out=out)}
    full_s = measure(calls, cores=core_speed(threads))["product"].time_s
    return full_s, float(np.mean(measure(calls)["product"].samples_s))


def summary(rows: list[Row]) -> list[str]:
    """Return the errors of each application in a sentence, and what is known of the iterations."""
    said = []
    for application in ("pagerank", "cg"):
        own = [row for row in rows if row.application == application]
        if not own:
            continue
        errors = np.array([row.error for row in own])
        within = int((np.abs(errors) <= 0.1).sum())
        said.append(
            f"{application}: {len(own)} runs, median error {100 * np.median(np.abs(errors)):.1f} %, 90th "
            f"percentile {100 * np.quantile(np.abs(errors), 0.9):.1f} %, mean signed error "
            f"{100 * errors.mean():+.1f} %; {within} within 10 %; of the product within the run: median "
            f"{100 * median(abs(row.product_error) for row in own):.1f} %, mean signed "
            f"{100 * mean(row.product_error for row in own):+.1f} %. The product alone, at full speed of the "
            f"cores: median error {100 * median(abs(row.alone_error) for row in own):.1f} %, mean signed "
            f"{100 * mean(row.alone_error for row in own):+.1f} %; without waiting for full speed it takes "
            f"{100 * median(row.usual_over_full for row in own):+.1f} %, and within the run "
            f"{100 * median(row.within_over_usual for row in own):+.1f} % beyond that (medians)."
        )
    bound = most_iterations(DAMPING, EPSILON)
    known = [row for row in rows if row.expected is not None]
    if known:
        ratios = [row.iterations / row.expected for row in known if row.expected]
        counts = [row.iterations for row in known]
        said.append(
            f"Iterations of PageRank: {min(counts)} to {max(counts)}, in the median "
            f"{100 * median(counts) / bound:.0f} % of the bound of {bound}; over those expected "
            f"{min(ratios):.2f} to {max(ratios):.2f}, median {median(ratios):.2f}; "
            f"{sum(bool(row.is_within) for row in known)} of {len(known)} within the interval."
        )
    return said


def main() -> None:
    """Measure, and print a row for each run, the worst error first, and a summary."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("matrices", nargs="*", metavar="MATRIX")
    parser.add_argument("--budget", type=float, default=150.0)
    parser.add_argument("--threads", type=int, default=None)
    parser.add_argument("--cg-iterations", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    end, rows, left = perf_counter() + asked.budget, [], 0
    for path in map(Path, asked.matrices) if asked.matrices else candidates():
        if perf_counter() > end:
            left += 1
            continue
        try:
            rows += rows_of(path, asked.threads, asked.cg_iterations)
        except InputError as error:
            print(f"left out: {error}", file=sys.stderr)
    if asked.json:
        print(json.dumps({"rows": [asdict(row) for row in rows], "summary": summary(rows), "left": left}))
        return
    table = Table(title="Whole runs, forecast and measured")
    for heading in ("run", "matrix", "format"):
        table.add_column(heading)
    for heading in (
        "non-zeros",
        "iterations",
        "forecast",
        "measured",
        "error",
        "of the product",
        "alone",
        "no wait",
        "in the run",
        "loops take",
    ):
        table.add_column(heading, justify="right")
    for row in sorted(rows, key=lambda each: -abs(each.error)):
        table.add_row(
            row.application,
            row.matrix,
            row.format,
            f"{row.nnz:,}",
            f"{row.iterations:,}",
            time(row.forecast_s),
            time(row.time_s),
            *(
                f"{100 * value:+.1f} %"
                for value in (
                    row.error,
                    row.product_error,
                    row.alone_error,
                    row.usual_over_full,
                    row.within_over_usual,
                )
            ),
            f"{100 * row.loops_share:.0f} %",
        )
    page = Console(width=170)
    page.print(table)
    for sentence in [*summary(rows), *([f"{left} matrices were left for lack of time."] if left else [])]:
        page.print(sentence, soft_wrap=True)


if __name__ == "__main__":
    main()
