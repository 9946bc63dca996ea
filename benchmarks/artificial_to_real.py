"""How far forecasts of real matrices are off that were learned from artificial ones alone.

    python benchmarks/artificial_to_real.py MACHINE REAL ARTIFICIAL...

The files are tables of cslab-ntua/SpMV-Research that `sparsecast.benchmark.published_moments` describes:
REAL has the matrices to forecast, on MACHINE, and each ARTIFICIAL results of artificial matrices there. All
that is learned is learned from the artificial ones:

- the model `sparsecast`;
- plain extremely randomised trees: scikit-learn's ExtraTreesRegressor with its usual settings, one for each
  kernel, on log(time), from all columns of numbers that the table has of a matrix: COLUMNS.

Printed are medians and ninetieth percentiles of abs(forecast - measured) / measured for each kernel, the
share of measurements inside of our intervals, and the regret of choosing by the forecasts: the time of the
kernel that is forecast to be the fastest over the least time measured, minus 1; its geometric mean, and the
worst.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.ensemble import ExtraTreesRegressor

from sparsecast.benchmark.published import import_published
from sparsecast.benchmark.published_moments import COUNTS, LOCALITY, MOMENTS, moment_results
from sparsecast.benchmark.published_tables import table_lines
from sparsecast.errors import SparsecastError
from sparsecast.machines.profile import Profile
from sparsecast.matrices.problem import PUBLISHED_PREFIX
from sparsecast.models.sparsecast import SparsecastModel
from sparsecast.models.training import TrainingSet

#: Columns that plain trees learn from.
COLUMNS = (
    *COUNTS,
    *MOMENTS,
    *LOCALITY,
    *("density_pct", "mem_footprint_MB", "avg_nnz_per_row", "avg_bw_scaled", "std_bw_scaled"),
    *("std_sc", "avg_sc_scaled", "std_sc_scaled"),
)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Scored:
    """Results of the real matrices and what was forecast of them: arrays of shape (results,), in seconds."""

    kernel: NDArray[np.str_]
    matrix: NDArray[np.str_]
    measured: Floats
    ours: Floats
    trees: Floats
    is_inside: NDArray[np.bool_]


def columns_of(path: Path) -> dict[str, list[float]]:
    """Return COLUMNS of each matrix, by its specification."""
    rest = [name for name in COLUMNS if name not in (*COUNTS, *MOMENTS, *LOCALITY)]
    named = {
        tuple(line[name] for name in COLUMNS if name not in rest): [line[name] for name in rest]
        for line in table_lines(path, COLUMNS, ())
    }
    found = {}
    for line in moment_results(path):
        own = tuple(line[name] for name in COLUMNS if name not in rest)
        found[f"{PUBLISHED_PREFIX}{line['group']}/{line['matrix']}"] = [*own, *named[own]]
    return found


def scored(known: Profile, asked: Profile, columns: dict[str, list[float]]) -> Scored:
    """Forecast the results of a profile from what another one teaches."""
    kernels = {record.candidate.kernel for record in known.records}
    records = [record for record in asked.records if record.candidate.kernel in kernels]
    kernel = np.array([record.candidate.kernel for record in records])
    model = SparsecastModel().fit(TrainingSet.of(known))
    estimates = [model.estimates(asked.structure(r), [r.candidate])[0] for r in records]
    trees = np.empty(len(records))
    for name in np.unique(kernel):
        own = [record for record in known.records if record.candidate.kernel == name]
        plain = ExtraTreesRegressor(random_state=0, n_jobs=-1).fit(
            [columns[record.matrix] for record in own], np.log([record.time_s for record in own])
        )
        chosen = np.nonzero(kernel == name)[0]
        trees[chosen] = np.exp(plain.predict([columns[records[place].matrix] for place in chosen]))
    measured = np.array([record.time_s for record in records])
    return Scored(
        kernel,
        np.array([record.matrix for record in records]),
        measured,
        np.array([each.value for each in estimates]),
        trees,
        np.array(
            [(each.low or 0) <= t <= (each.high or 0) for each, t in zip(estimates, measured, strict=True)]
        ),
    )


def errors(found: Scored, forecast: Floats, own: NDArray[np.bool_]) -> str:
    """Return the median error and the ninetieth percentile, in words."""
    error = np.abs(forecast[own] / found.measured[own] - 1.0)
    return f"{np.median(error):.1%} ({np.quantile(error, 0.9):.0%})"


def regret(found: Scored, forecast: Floats) -> str:
    """Return the regret of choosing by forecasts, and the worst ratio, in words."""
    ratios = []
    for matrix in np.unique(found.matrix):
        own = np.nonzero(found.matrix == matrix)[0]
        ratios.append(found.measured[own[np.argmin(forecast[own])]] / found.measured[own].min())
    return f"{np.exp(np.mean(np.log(ratios))) - 1:.2%}, at worst {max(ratios):.1f}x"


def main() -> int:
    """Print the table and return the exit status."""
    if len(sys.argv) < 4:
        print("usage: python benchmarks/artificial_to_real.py MACHINE REAL ARTIFICIAL...", file=sys.stderr)
        return 2
    machine, real, *artificial = sys.argv[1], *map(Path, sys.argv[2:])
    try:
        asked = import_published([real], machine, machine).profile
        known = import_published(artificial, machine, machine).profile
        columns = {name: own for path in (real, *artificial) for name, own in columns_of(path).items()}
    except SparsecastError as error:
        print(error, file=sys.stderr)
        return 2
    found = scored(known, asked, columns)
    table = Table(title="Median errors, and 90th percentiles")
    for heading in ("kernel", "matrices", "inside", "sparsecast", "extremely randomised trees"):
        table.add_column(heading, justify="left" if heading == "kernel" else "right")
    for name in np.unique(found.kernel):
        own = found.kernel == name
        counts = f"{own.sum()}", f"{found.is_inside[own].mean():.0%}"
        table.add_row(str(name), *counts, errors(found, found.ours, own), errors(found, found.trees, own))
    inside = f"{found.is_inside.mean():.0%}"
    table.add_row("regret", "", inside, regret(found, found.ours), regret(found, found.trees))
    Console(width=120).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
