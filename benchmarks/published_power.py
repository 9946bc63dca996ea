"""How far forecasts of the power of real matrices are off that were learned from artificial ones alone.

    python benchmarks/published_power.py MACHINE REAL ARTIFICIAL...

The files are those of `artificial_to_real.py`. Printed are, for each kernel, medians and ninetieth
percentiles of abs(forecast - measured) / measured: of the watts, which are also the errors of joules from a
measured time, by the model `power` and by plain extremely randomised trees on all columns; of the joules
from the forecast time, beside the errors of that time; and how far the watts of the real matrices spread.
"""

from __future__ import annotations

import sys
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

Floats = NDArray[np.float64]


def shown(forecast: Floats, measured: Floats) -> str:
    """Return the median error and the ninetieth percentile, in words."""
    error = np.abs(forecast / measured - 1.0)
    return f"{np.median(error):.1%} ({np.quantile(error, 0.9):.0%})"


def plain_watts(known: Profile, asked: Profile, name: str, columns: dict[str, list[float]]) -> Floats:
    """Return the watts of the real matrices in a kernel, by plain trees on all columns."""
    own = [r for r in known.records if r.candidate.kernel == name and r.energy_j is not None]
    plain = ExtraTreesRegressor(random_state=0, n_jobs=-1).fit(
        [columns[r.matrix] for r in own], [r.energy_j / r.time_s for r in own]
    )
    real = [r for r in asked.records if r.candidate.kernel == name and r.energy_j is not None]
    return np.asarray(plain.predict([columns[r.matrix] for r in real]))


def main() -> int:
    """Print the table and return the exit status."""
    if len(sys.argv) < 4:
        print("usage: python benchmarks/published_power.py MACHINE REAL ARTIFICIAL...", file=sys.stderr)
        return 2
    machine, real, *artificial = sys.argv[1], *map(Path, sys.argv[2:])
    try:
        asked = import_published([real], machine, machine).profile
        known = import_published(artificial, machine, machine).profile
        columns = {name: own for path in (real, *artificial) for name, own in columns_of(path).items()}
    except SparsecastError as error:
        print(error, file=sys.stderr)
        return 2
    model = PowerModel().fit(TrainingSet.of(known))
    table = Table(title="Median errors, and 90th percentiles")
    for heading in ("kernel", "matrices", "spread", "watts, power", "watts, trees", "joules", "time"):
        table.add_column(heading, justify="left" if heading == "kernel" else "right")
    for name in sorted({record.candidate.kernel for record in known.records}):
        own = [r for r in asked.records if r.candidate.kernel == name and r.energy_j is not None]
        if not own:
            continue
        time_s, joules = (np.array([getattr(r, key) for r in own]) for key in ("time_s", "energy_j"))
        blocks = [RowBlocks.of(asked.structure(record)) for record in own]
        both = list(zip(own, blocks, strict=True))
        expected_s = np.array([model.time_.values(r.candidate, b)[0] for r, b in both])
        watts = np.array(
            [
                model.watts(r.candidate, b, np.array([t]))["watts"][0]
                for (r, b), t in zip(both, expected_s, strict=True)
            ]
        )
        measured = joules / time_s
        table.add_row(
            name,
            f"{len(own)}",
            f"{measured.std() / measured.mean():.0%}",
            shown(watts, measured),
            shown(plain_watts(known, asked, name, columns), measured),
            shown(watts * expected_s, joules),
            shown(expected_s, time_s),
        )
    Console(width=120).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
