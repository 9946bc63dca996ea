"""How far off the project's own model is on machines that others have measured.

    python benchmarks/published_machines.py FILE [MACHINE...]

FILE is the table of ginkgo-project/ginkgo-data, commit b9082895 (CC BY 4.0), that
`sparsecast.benchmark.published` describes; without names, all machines are taken that have results of at
least LEAST_MATRICES matrices. The groups of the SuiteSparse collection are divided into PARTS. Each part is
forecast by what learned from the others:

- the model `sparsecast`;
- plain gradient boosting: scikit-learn's HistGradientBoostingRegressor with its usual settings, one for each
  kernel, on log(time), from what the table says of a matrix: BASELINE, where it has them.

Printed are medians of abs(forecast - measured) / measured for each kernel, of all matrices and of those above
LARGE entries, the share of measurements inside of our intervals, and the regret: for each matrix the time of
the kernel that is forecast to be the fastest over the least time measured, minus 1; its geometric mean, and
the worst. The matrices of the regret are those with results of more than one kernel.

"Alike" is the median difference of a kernel's times, over the least, for two matrices of which the table says
the same: no forecast from it can tell them apart.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.ensemble import HistGradientBoostingRegressor

from sparsecast.benchmark.published import FIVE, OPTIONAL, REQUIRED, published_profiles
from sparsecast.benchmark.published_tables import table_lines
from sparsecast.errors import ProfileError
from sparsecast.machines.profile import Profile
from sparsecast.matrices.problem import PUBLISHED_PREFIX, group_of
from sparsecast.models.sparsecast import SparsecastModel
from sparsecast.models.training import TrainingSet

PARTS, LARGE, LEAST_MATRICES = 5, 1_000_000, 500

#: Columns of the table that plain gradient boosting learns from.
BASELINE = (
    *("rows", "cols", "nnz", "psym", "nsym", *FIVE),
    *("rd_mean", "rd_variance", "rd_skewness", "rd_kurtosis"),
)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Scored:
    """Results of a machine and what was forecast of them: arrays of shape (results,), times in seconds.

    `counts` is the same number for matrices of which the table says the same.
    """

    kernel: NDArray[np.str_]
    matrix: NDArray[np.str_]
    nnz: NDArray[np.int64]
    counts: NDArray[np.int64]
    measured: Floats
    ours: Floats
    boosting: Floats
    is_inside: NDArray[np.bool_]


def columns_of(path: Path) -> Mapping[str, list[float]]:
    """Return what the table says of each matrix, by its specification."""
    lines = table_lines(path, REQUIRED, (*OPTIONAL, *(name for name in BASELINE if name not in REQUIRED)))
    return {
        f"{PUBLISHED_PREFIX}{line['group']}/{line['matrix']}": [
            np.nan if line[name] is None else line[name] for name in BASELINE
        ]
        for line in lines
    }


def scored(profile: Profile, columns: Mapping[str, list[float]]) -> Scored:
    """Forecast every result of a machine by what learned from other groups."""
    records = profile.records
    names = sorted({group_of(record.matrix) for record in records})
    part_of = {name: place % PARTS for place, name in enumerate(np.random.default_rng(0).permutation(names))}
    part = np.array([part_of[group_of(record.matrix)] for record in records])
    kernel = np.array([record.candidate.kernel for record in records])
    measured = np.array([record.time_s for record in records])
    ours, low, high, boosting = np.full((4, len(records)), np.nan)
    features = np.array([columns[record.matrix] for record in records])
    for out in range(PARTS):
        learned = [record for record, own in zip(records, part, strict=True) if own != out]
        model = SparsecastModel().fit(TrainingSet.of(profile, learned))
        for place in np.nonzero(part == out)[0]:
            record = records[place]
            for each in model.estimates(profile.structure(record), [record.candidate]):
                ours[place], low[place], high[place] = each.value, each.low, each.high
        for name in np.unique(kernel[part == out]):
            known, asked = (part != out) & (kernel == name), (part == out) & (kernel == name)
            plain = HistGradientBoostingRegressor(random_state=0).fit(
                features[known], np.log(measured[known])
            )
            boosting[asked] = np.exp(plain.predict(features[asked]))
    matrix, nnz = np.array([r.matrix for r in records]), np.array([r.nnz for r in records])
    counts = np.unique(features, axis=0, return_inverse=True)[1].reshape(-1)
    return Scored(
        kernel, matrix, nnz, counts, measured, ours, boosting, (low <= measured) & (measured <= high)
    )


def medians(found: Scored, forecast: Floats, chosen: NDArray[np.bool_]) -> str:
    """Return the median error of forecasts, of all that are chosen and of large matrices, in words."""
    error = np.abs(forecast / found.measured - 1.0)
    large = error[chosen & (found.nnz > LARGE)]
    return f"{np.median(error[chosen]):.1%} ({f'{np.median(large):.1%}' if len(large) else '-'})"


def regret(found: Scored, forecast: Floats) -> str:
    """Return the regret of choosing by forecasts, and the worst ratio, in words."""
    ratios = []
    order = np.argsort(found.matrix, kind="stable")
    for own in np.split(
        order, np.nonzero(np.diff(np.unique(found.matrix[order], return_inverse=True)[1]))[0] + 1
    ):
        if len(own) > 1:
            ratios.append(found.measured[own[np.argmin(forecast[own])]] / found.measured[own].min())
    return f"{np.exp(np.mean(np.log(ratios))) - 1:.2%}, at worst {max(ratios):.1f}x"


def difference_of_alike(found: Scored, chosen: NDArray[np.bool_]) -> str:
    """Return the median difference of the times of pairs of matrices that only their names tell apart."""
    counts, measured = found.counts[chosen], found.measured[chosen]
    order = np.argsort(counts, kind="stable")
    first, second = order[:-1], order[1:]
    are_alike = counts[first] == counts[second]
    differences = np.expm1(np.abs(np.log(measured[first] / measured[second])))[are_alike]
    return f"{np.median(differences):.1%}" if len(differences) else "-"


def rows_of(name: str, found: Scored) -> Iterator[list[str]]:
    """Give the table's rows of a machine."""
    for kernel in np.unique(found.kernel):
        own = found.kernel == kernel
        counts = (
            f"{own.sum():,}",
            difference_of_alike(found, own),
            f"{found.is_inside[own].mean():.0%}",
        )
        yield [
            name,
            str(kernel),
            *counts,
            medians(found, found.ours, own),
            medians(found, found.boosting, own),
        ]
    inside = f"{found.is_inside.mean():.0%}"
    yield [name, "regret", "", "", inside, regret(found, found.ours), regret(found, found.boosting)]


def main() -> int:
    """Print the table and return the exit status."""
    if len(sys.argv) < 2:
        print("usage: python benchmarks/published_machines.py FILE [MACHINE...]", file=sys.stderr)
        return 2
    path, wanted = Path(sys.argv[1]), sys.argv[2:]
    try:
        profiles, columns = published_profiles(path), columns_of(path)
    except ProfileError as error:
        print(error, file=sys.stderr)
        return 2
    if unknown := set(wanted) - set(profiles):
        print(f"{unknown} is not in {path}: expected some of {', '.join(profiles)}", file=sys.stderr)
        return 2
    table = Table(title=f"Median errors, and of matrices above {LARGE:,} entries")
    for heading in ("machine", "kernel", "results", "alike", "inside", "sparsecast", "gradient boosting"):
        table.add_column(heading, justify="left" if heading in ("machine", "kernel") else "right")
    for name in wanted or [name for name, each in profiles.items() if len(each.matrices) >= LEAST_MATRICES]:
        start = perf_counter()
        for row in rows_of(name, scored(profiles[name], columns)):
            table.add_row(*row)
        table.add_section()
        print(f"{name}: {perf_counter() - start:.0f} s", file=sys.stderr)
    Console(width=130).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
