"""What the forecasts of a matrix cost, in products of our plain CSR, and what looking at a sample changes.

    python benchmarks/forecast_cost.py [--profile NAME_OR_FILE] [--models NAME,NAME] [MATRIX...]

Everything runs on one thread, in turn with the product, as machines drift; the least of several times counts.
The cost is that of the Structure, which is a sample of a large matrix, and of the forecasts of all formats.
The goal is at most 3 products above 1 million non-zeros and 1 above 10 million. The last columns compare the
forecasts with those from a Structure for which all entries were looked at.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from time import perf_counter

import numpy as np
from rich.console import Console
from rich.table import Table

from sparsecast import api
from sparsecast.api.resolving import training_for
from sparsecast.devices.binding import bind
from sparsecast.devices.target import Target
from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.structure import Structure
from sparsecast.machines.profile import find_profile
from sparsecast.matrices.problem import Problem
from sparsecast.models import MODELS
from sparsecast.models.model import Model
from sparsecast.planning.candidates import whole_matrix
from sparsecast.records import Estimate

#: Gallery matrices above 1 million and above 10 million entries.
SPECIFICATIONS = (
    "poisson3d?n=60",
    "poisson3d?n=40&points=27",
    "elasticity3d?n=20",
    "banded?n=100000",
    "circuit?n=300000",
    "rmat?scale=17&degree=12",
    "random?n=200000",
    "random?n=600000&nnz_per_row=2",
    "arrow?n=400000",
    "poisson2d?n=1500",
    "poisson3d?n=120",
    "poisson3d?n=75&points=27",
    "elasticity3d?n=36",
    "banded?n=700000",
    "circuit?n=2500000",
    "rmat?scale=20&degree=12",
    "random?n=1500000",
    "random?n=6000000&nnz_per_row=2",
    "arrow?n=2500000",
)
SAMPLES = 7


def alternated(tasks: list[Callable[[], object]]) -> list[float]:
    """Return the least seconds of each task, sampled in turn."""
    least = [np.inf] * len(tasks)
    for _ in range(SAMPLES):
        for number, task in enumerate(tasks):
            start = perf_counter()
            task()
            least[number] = min(least[number], perf_counter() - start)
    return least


def forecast(model: Model, found: Structure, target: Target) -> list[Estimate]:
    """Return the forecasts of all formats that suit a matrix."""
    return model.estimates(found, whole_matrix(found, target, model.machine_, model.kernels).candidates)


def differences(model: Model, target: Target, found: Structure, exact: Structure) -> list[float]:
    """Return by how much each forecast from a sample differs from that from all entries, relative to it."""
    here, there = (
        {each.candidate: each.value for each in forecast(model, one, target)} for one in (found, exact)
    )
    if here.keys() != there.keys():
        raise SystemExit(f"other candidates from the sample: {here.keys() ^ there.keys()}")
    return [abs(here[candidate] / there[candidate] - 1) for candidate in here]


def row(matrix: str, models: list[Model], target: Target) -> tuple[list[str], list[list[float]]]:
    """Return the table's line for one matrix, and for each model the differences of its forecasts."""
    problem = Problem.named(matrix)
    A, exact, found = problem.matrix, problem.structure, problem.sampled_structure
    csr = target.candidate("csr", RowBlocks.of(found), models[0].machine_)
    product, x, y = bind(A, csr).product, np.ones(A.shape[1]), np.empty(A.shape[0])
    tasks: list[Callable[[], object]] = [
        lambda: product(x, y),
        lambda: structure(A, threads=1),
        lambda: structure(A, threads=1, is_sampled=True),
        *(lambda model=model: forecast(model, found, target) for model in models),  # type: ignore[misc]
    ]
    product_s, exact_s, sample_s, *forecasts_s = alternated(tasks)
    changes = [differences(model, target, found, exact) for model in models]
    return [
        problem.name.removeprefix("gallery:"),
        f"{A.nnz / 1e6:.1f}",
        "yes" if found.symmetry.triangle_nnz is not None else "",
        f"{product_s * 1e3:.2f}",
        f"{exact_s / product_s:.2f}",
        f"{sample_s / product_s:.2f}",
        ", ".join(f"{each / product_s:.2f}" for each in forecasts_s),
        ", ".join(f"{(sample_s + each) / product_s:.2f}" for each in forecasts_s),
        ", ".join(f"{100 * np.median(each):.1f}" for each in changes),
        ", ".join(f"{100 * max(each):.1f}" for each in changes),
    ], changes


def main() -> None:
    """Print the table, and below it the median difference of all forecasts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("matrices", nargs="*", metavar="MATRIX")
    parser.add_argument("--profile")
    parser.add_argument("--models", default="sparsecast,linear")
    arguments = parser.parse_args()
    profile = find_profile(arguments.profile) if arguments.profile else api.profile()
    target = Target("cpu", "float64", 32, 1)
    training = training_for(profile, target)
    models = [MODELS.get(name)().fit(training) for name in arguments.models.split(",")]
    table = Table(title=f"Cost in products of our CSR, one thread; models: {arguments.models}")
    table.add_column("matrix", no_wrap=True)
    for heading in ("million entries", "symmetric", "product, ms", "Structure", "of a sample", "forecasts"):
        table.add_column(heading, justify="right")
    for heading in ("sample and forecasts", "difference in %, median", "greatest"):
        table.add_column(heading, justify="right")
    found: list[list[list[float]]] = []
    for matrix in arguments.matrices or [f"gallery:{each}" for each in SPECIFICATIONS]:
        cells, changes = row(matrix, models, target)
        table.add_row(*cells)
        found.append(changes)
    Console(width=150).print(table)
    for number, model in enumerate(models):
        pooled = np.array([each for changes in found for each in changes[number]])
        print(
            f"{model.name}: forecasts differ by {100 * np.median(pooled):.2f} % in the median, "
            f"and by {100 * np.quantile(pooled, 0.9):.2f} % at the 90th percentile"
        )


if __name__ == "__main__":
    main()
