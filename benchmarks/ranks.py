"""Products on ranks: their forecasts beside measurements, where they end, and how they start.

How fast the products are, also beside PETSc's, says ``mpirun -n N sparsecast measure MATRIX --algorithm
local-1d,local-1d-overlap,petsc --format csr,dia --partition rows --no-keep``. petsc4py and mpi4py must load
the MPI library that PETSc was built with, and mpirun must be that library's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from math import ceil, isqrt
from operator import itemgetter
from pathlib import Path
from statistics import mean, median
from typing import Annotated, Any

import typer

from experiment import Matrices, Rows, experiment
from sparsecast import api
from sparsecast.distributed.products import PRODUCTS, default_algorithms
from sparsecast.matrices.partitioning.estimates import estimated_distribution
from sparsecast.models.clusters.cluster_model import ClusterTraining, Question
from sparsecast.models.clusters.sparsecast import SparsecastClusterModel
from sparsecast.records import Configuration
from sparsecast.results.cluster import enough_ranks
from sparsecast.system.tabular import grouped

PANEL = "Ranks"
SPARSECAST = [sys.executable, "-c", "from sparsecast.cli.main import main; main()"]

_BESIDE = Path(sys.executable).with_name("mpirun")
MPIRUN = str(_BESIDE) if _BESIDE.exists() else "mpirun"


def environment() -> dict[str, str]:
    """Return the variables of the ranks: Open MPI needs these where the root user runs it."""
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return {"OMP_NUM_THREADS": "1", **allowed, **os.environ}


@experiment(PANEL)
def rank_forecasts(
    matrices: Matrices = None,
    ranks: Annotated[list[int], typer.Option(help="Repeat for several.")] = [1, 2],  # noqa: B006
    formats: str = "csr,coo",
    least_nnz: int = 100_000,
    mpirun: Annotated[str, typer.Option(help="Of the MPI library that mpi4py loads.")] = MPIRUN,
) -> Rows:
    """Measure products on ranks here, and score the forecasts of all that was kept by cross-validation.

    The machine must be calibrated for one thread (`sparsecast calibrate --threads 1`) and for ranks (`mpirun
    -n N sparsecast calibrate --ranks`). Without a MATRIX it scores what was kept.
    """
    for matrix in matrices or ():
        for count in ranks:
            command = [
                mpirun,
                "-n",
                str(count),
                *SPARSECAST,
                "measure",
                matrix,
                "--format",
                formats,
                "--json",
            ]
            if count == 1:  # one rank has one algorithm unless they are named
                command += ["--algorithm", "global-1d,local-1d,local-1d-overlap,2d"]
            done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
            if done.returncode:
                reason = (done.stderr.strip().splitlines() or ["no reason"])[-1]
                yield f"left out: {matrix} on {count} ranks: {reason}"
    command = [*SPARSECAST, "evaluate", "--replay", "--ranks", "--json"]
    done = subprocess.run(command, env=environment(), stdout=subprocess.PIPE, text=True, check=True)
    every = json.loads(done.stdout)["rows"]
    rows = [row for row in every if row["nnz"] > least_nnz and row["ranks"] in ranks]
    yield f"{len({row['matrix'] for row in rows})} matrices with more than {least_nnz:,} non-zeros."
    for names in (("model",), ("model", "ranks"), ("model", "ranks", "algorithm", "format")):
        for key, own in sorted(grouped(rows, itemgetter(*names)).items(), key=str):
            values = (key,) if len(names) == 1 else key
            within = [r["low_s"] <= r["measured_s"] <= r["high_s"] for r in own if r["low_s"] is not None]
            errors = [row["error"] for row in own]
            yield {
                **dict.fromkeys(("model", "ranks", "algorithm", "format"), "all"),
                **dict(zip(names, map(str, values), strict=True)),
                "products": len(own),
                "median error": median(errors),
                "mean error": mean(errors),
                "within": mean(within) if within else None,
                **(_choices(own, rows) if len(names) == 2 else {}),
            }


def _choices(of_model: list[dict[str, Any]], rows: list[dict[str, Any]]) -> dict[str, float]:
    """Return how often a model chose the fastest measured way, or one within 5 % of it."""
    fastest_s = {
        key: min(row["measured_s"] for row in own)
        for key, own in grouped(rows, itemgetter("matrix", "ranks")).items()
    }
    ratios = []
    for own in grouped(of_model, itemgetter("matrix")).values():
        chosen = min(own, key=itemgetter("predicted_s"))
        ratios.append(chosen["measured_s"] / fastest_s[chosen["matrix"], chosen["ranks"]])
    return {
        "fastest chosen, share": mean(ratio == 1 for ratio in ratios),
        "or 5 % slower, share": mean(ratio <= 1.05 for ratio in ratios),
        "worst choice": max(ratios),
    }


#: Kinds of matrices: entries per row, and the dimension of the mesh; None has no locality.
KINDS = {"mesh, 2 dimensions": (5, 2), "mesh, 3 dimensions": (7, 3), "power-law graph": (32, None)}


@experiment(PANEL)
def scale_study(profile: str = "xeon-gold-6154-edr", rows: int = 2**24) -> Rows:
    """Forecast where distributed products end, up to 100,000 ranks; nothing is measured.

    The matrices are counts alone. In the graph each entry needs an x of another rank, which is a bound; its
    hubs are left out. For each algorithm in CSR: the fewest ranks within a twentieth of its best time, the
    time there and on the most ranks, and the term that is largest on these.
    """
    machine = api.profile(profile).machine
    model = SparsecastClusterModel().fit(ClusterTraining(machine, api.profile(profile).microbenchmarks))
    for kind, (length, mesh) in KINDS.items():
        for algorithm in default_algorithms():
            is_2d = PRODUCTS.get(algorithm).is_2d
            method, dimension = ("uniform-2d", None) if is_2d else ("metis", mesh)
            counts = [2**k for k in range(17)] + [100_000]
            forecasts = []
            for ranks in sorted({isqrt(count) ** 2 if is_2d else count for count in counts}):
                nodes = ceil(ranks / machine.cores)
                distribution = estimated_distribution(rows, rows, length * rows, ranks, method, dimension)
                way = Configuration(algorithm, "csr", "csr", method, ranks, nodes)
                forecasts += model.forecast([way], Question(distribution))
            enough = enough_ranks(forecasts)
            end = next(f for f in forecasts if f.configuration.ranks == enough)
            last = forecasts[-1]
            term, seconds = max(last.terms, key=lambda item: item[1])
            yield {
                "matrix": kind,
                "algorithm": algorithm,
                "ends at": end.configuration.ranks if end is not last else None,
                "there_s": end.time_s,
                "most ranks": last.configuration.ranks,
                "with most_s": last.time_s,
                "largest term": f"{term} {100 * seconds / sum(value for _, value in last.terms):.0f} %",
            }
