"""Products on ranks: their forecasts beside measurements.

How fast the products are, also beside PETSc's, says ``mpirun -n N sparsecast measure MATRIX --algorithm
local-1d,local-1d-overlap,petsc --format csr,dia --partition rows --no-keep``. petsc4py and mpi4py must load
the MPI library that PETSc was built with, and mpirun must be that library's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from statistics import mean, median
from typing import Annotated, Any

import typer

from experiment import Matrices, Rows, experiment
from sparsecast.system.tabular import grouped

SPARSECAST = [sys.executable, "-c", "from sparsecast.cli.main import main; main()"]

_BESIDE = Path(sys.executable).with_name("mpirun")
MPIRUN = str(_BESIDE) if _BESIDE.exists() else "mpirun"


def environment() -> dict[str, str]:
    """Return the variables of the ranks: Open MPI needs these where the root user runs it."""
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return {"OMP_NUM_THREADS": "1", **allowed, **os.environ}


@experiment("Ranks")
def rank_forecasts(
    matrices: Matrices = None,
    ranks: Annotated[list[int], typer.Option(help="Repeat for several.")] = [1, 2],  # noqa: B006
    formats: str = "csr,coo",
    least_nnz: int = 100_000,
    mpirun: Annotated[str, typer.Option(help="Of the MPI library that mpi4py loads.")] = MPIRUN,
) -> Rows:
    """Measure products on ranks here, and score the forecasts of all that was kept by cross-validation.

    The machine must be calibrated for one thread (`sparsecast calibrate --threads 1`) and for ranks (`mpirun
    -n N sparsecast calibrate --ranks`). Without a MATRIX it scores what was kept, as `sparsecast evaluate
    --replay --ranks` does of all ranks and matrices.
    """
    for matrix in matrices or ():
        for count in ranks:
            command = [mpirun, "-n", str(count), *SPARSECAST, "measure", matrix, "--format", formats]
            # One rank has one algorithm unless they are named.
            command += ["--algorithm", "global-1d,local-1d,local-1d-overlap,2d"] if count == 1 else []
            done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
            if done.returncode:
                reason = (done.stderr.strip().splitlines() or ["no reason"])[-1]
                yield f"left out: {matrix} on {count} ranks: {reason}"
    command = [*SPARSECAST, "evaluate", "--replay", "--ranks", "--json"]
    done = subprocess.run(command, env=environment(), stdout=subprocess.PIPE, text=True, check=True)
    every = json.loads(done.stdout)["rows"]
    rows = [row for row in every if row["nnz"] > least_nnz and row["ranks"] in ranks]
    yield f"{len({row['matrix'] for row in rows})} matrices with more than {least_nnz:,} non-zeros."
    yield from scores(rows)


def scores(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the errors of each model on each number of ranks, and how often it chose well."""
    fastest_s: dict[tuple[str, int], float] = {}
    for row in rows:
        key = row["matrix"], row["ranks"]
        fastest_s[key] = min(row["measured_s"], fastest_s.get(key, row["measured_s"]))
    for (model, ranks), own in sorted(grouped(rows, itemgetter("model", "ranks")).items()):
        errors = [row["error"] for row in own]
        within = [
            row["low_s"] <= row["measured_s"] <= row["high_s"] for row in own if row["low_s"] is not None
        ]
        chosen = [
            min(ways, key=itemgetter("predicted_s")) for ways in grouped(own, itemgetter("matrix")).values()
        ]
        ratios = [row["measured_s"] / fastest_s[row["matrix"], ranks] for row in chosen]
        yield {
            "model": model,
            "ranks": ranks,
            "products": len(own),
            "median error": median(errors),
            "mean error": mean(errors),
            "within": mean(within) if within else None,
            "fastest chosen, share": mean(ratio == 1 for ratio in ratios),
            "or 5 % slower, share": mean(ratio <= 1.05 for ratio in ratios),
            "worst choice": max(ratios),
        }
