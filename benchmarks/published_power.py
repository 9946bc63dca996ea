"""How far forecasts of the power of matrices are off that were learned from others.

    python benchmarks/published_power.py MACHINE REAL [ARTIFICIAL...]

The files are those of `artificial_to_real.py`: all is learned from the artificial matrices. Without them,
fifths of the real ones are left out in turn; a kernel of which too few are left is not forecast. Printed
are, for each kernel, medians and ninetieth percentiles of abs(forecast - measured) / measured:

- of the watts, and so of the joules, where the time is measured: by the model `power`, and by plain extremely
  randomised trees (scikit-learn's ExtraTreesRegressor with its usual settings) on all columns;
- of the watts, and of the joules, at the forecast time, and of that time;

how many of the joules are in their intervals at the forecast time, and how far the watts spread.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from sklearn.ensemble import ExtraTreesRegressor

from artificial_to_real import columns_of
from sparsecast.benchmark.published import import_published
from sparsecast.errors import SparsecastError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.machines.profile import Profile
from sparsecast.models.power import PowerModel
from sparsecast.models.training import TrainingSet
from sparsecast.records import Record

Floats = NDArray[np.float64]

#: Parts of the real matrices that are left out in turn.
FOLDS = 5


@dataclass(frozen=True)
class Found:
    """A result, in joules and seconds, and what was forecast of it."""

    record: Record
    watts: float
    plain_watts: float
    watts_then: float
    time_s: float
    is_inside: bool


def folds(asked: Profile, known: Profile | None) -> Iterator[tuple[Profile, list[Record]]]:
    """Return profiles to learn from, and what to forecast."""
    records = [record for record in asked.records if record.energy_j is not None]
    if known is not None:
        kernels = {record.candidate.kernel for record in known.records}
        yield known, [record for record in records if record.candidate.kernel in kernels]
        return
    names = sorted({record.matrix for record in records})
    for first in range(FOLDS):
        out = set(names[first::FOLDS])
        rest = replace(asked, records=tuple(r for r in asked.records if r.matrix not in out))
        yield rest, [record for record in records if record.matrix in out]


def scored(
    known: Profile, asked: Profile, records: list[Record], columns: dict[str, list[float]]
) -> list[Found]:
    """Forecast results from what a profile teaches."""
    model, found = PowerModel().fit(TrainingSet.of(known)), []
    for name in sorted({record.candidate.kernel for record in records}):
        own = [r for r in known.records if r.candidate.kernel == name and r.energy_j is not None]
        plain = ExtraTreesRegressor(random_state=0, n_jobs=-1).fit(
            [columns[r.matrix] for r in own], [r.energy_j / r.time_s for r in own]
        )
        asked_of = [record for record in records if record.candidate.kernel == name]
        for r in [record for record in asked_of if model.serves(record.candidate)]:
            structure = asked.structure(r)
            blocks = RowBlocks.of(structure)
            expected_s = model.time_.values(r.candidate, blocks)
            estimate = model.estimates(structure, [r.candidate])[0]
            found.append(
                Found(
                    r,
                    model.watts(r.candidate, blocks, np.array([r.time_s]))["watts"][0],
                    plain.predict([columns[r.matrix]])[0],
                    model.watts(r.candidate, blocks, expected_s)["watts"][0],
                    expected_s[0],
                    (estimate.low or 0) <= r.energy_j <= (estimate.high or 0),
                )
            )
    return found


def shown(forecast: list[float], measured: list[float]) -> str:
    """Return the median error and the ninetieth percentile, in words."""
    error = np.abs(np.array(forecast) / np.array(measured) - 1.0)
    return f"{np.median(error):.1%} ({np.quantile(error, 0.9):.0%})"


def row(own: list[Found]) -> list[str]:
    """Return a line of the table."""
    joules, time_s = [f.record.energy_j for f in own], [f.record.time_s for f in own]
    watts = [j / t for j, t in zip(joules, time_s, strict=True)]
    return [
        f"{len(own)}",
        f"{np.std(watts) / np.mean(watts):.0%}",
        shown([f.watts for f in own], watts),
        shown([f.plain_watts for f in own], watts),
        shown([f.watts_then for f in own], watts),
        shown([f.watts_then * f.time_s for f in own], joules),
        shown([f.time_s for f in own], time_s),
        f"{np.mean([f.is_inside for f in own]):.0%}",
    ]


def main() -> int:
    """Print the table and return the exit status."""
    if len(sys.argv) < 3:
        print("usage: python benchmarks/published_power.py MACHINE REAL [ARTIFICIAL...]", file=sys.stderr)
        return 2
    machine, real, *artificial = sys.argv[1], *map(Path, sys.argv[2:])
    try:
        asked = import_published([real], machine, machine).profile
        known = import_published(artificial, machine, machine).profile if artificial else None
        columns = {name: own for path in (real, *artificial) for name, own in columns_of(path).items()}
    except SparsecastError as error:
        print(error, file=sys.stderr)
        return 2
    found = [each for fold in folds(asked, known) for each in scored(fold[0], asked, fold[1], columns)]
    table = Table(title="Median errors, and 90th percentiles")
    headings = "matrices", "spread", "watts", "plain trees", "watts then", "joules then", "time", "inside"
    table.add_column("kernel")
    for heading in headings:
        table.add_column(heading, justify="right")
    for name in sorted({each.record.candidate.kernel for each in found}):
        table.add_row(name, *row([each for each in found if each.record.candidate.kernel == name]))
    Console(width=120).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
