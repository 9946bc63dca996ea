"""Where distributed products end: forecasts to 100,000 ranks of meshes and of power-law graphs.

    python benchmarks/scale_study.py [--profile NAME|PATH] [--rows N] [--figure FILE.svg]

The matrices are counts alone: a mesh in two dimensions with 5 entries a row, one in three with 7, and a
graph with 32 entries a row whose partition finds nothing, so that each entry needs an x of another rank. That
is how a power-law graph is bounded here; its hubs, which make ranks unequal, are left out. For each algorithm
in CSR the table has the fewest ranks that are within a twentieth of its best time, the time there, the time
on the most ranks, and the term that is largest on these: why it ended, where it did.

Nothing is measured: this is what `sparsecast.models.clusters.sparsecast` makes of the speeds of a profile.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from math import ceil, isqrt
from pathlib import Path

from rich.console import Console
from rich.table import Table

from sparsecast import api
from sparsecast.machines.profile import Profile
from sparsecast.matrices.partitioning.distribution import Distribution
from sparsecast.matrices.partitioning.estimates import estimated_distribution
from sparsecast.models.clusters.cluster_model import ClusterForecast, ClusterTraining, Question
from sparsecast.models.clusters.sparsecast import SparsecastClusterModel
from sparsecast.planning.cluster_choice import choices, enough_ranks
from sparsecast.records import ALGORITHMS, Configuration
from sparsecast.reports.cluster_reports import Scaling, draw
from sparsecast.reports.tables import time

#: Rows of each matrix, unless others are asked for.
ROWS = 2**24


@dataclass(frozen=True)
class Kind:
    """A kind of matrices: entries a row, and the dimension of the mesh; None without locality."""

    name: str
    length: int
    dimension: int | None


KINDS = (
    Kind("mesh, 2 dimensions", 5, 2),
    Kind("mesh, 3 dimensions", 7, 3),
    Kind("power-law graph", 32, None),
)


def asked_ranks(algorithm: str) -> list[int]:
    """Return powers of two to 100,000 ranks; for 2D the squares below them."""
    found = [2**k for k in range(17)] + [100_000]
    return sorted({isqrt(ranks) ** 2 for ranks in found} if algorithm == "2d" else set(found))


def distributed(kind: Kind, rows: int, method: str, ranks: int) -> Distribution:
    """Return the estimated distribution of a kind of matrices among ranks."""
    dimension = None if method == "uniform-2d" else kind.dimension
    return estimated_distribution(rows, rows, kind.length * rows, ranks, method, dimension)


def scaled(
    model: SparsecastClusterModel, profile: Profile, kind: Kind, rows: int, algorithm: str
) -> list[ClusterForecast]:
    """Return the forecasts of an algorithm in CSR over the ranks."""
    method = "uniform-2d" if algorithm == "2d" else "metis"
    found = []
    for ranks in asked_ranks(algorithm):
        way = Configuration(algorithm, "csr", "csr", method, ranks, ceil(ranks / profile.machine.cores))
        found += model.forecast([way], Question(distributed(kind, rows, method, ranks)))
    return found


def end(found: list[ClusterForecast]) -> ClusterForecast:
    """Return the forecast on the fewest ranks that is within a twentieth of the best."""
    enough = enough_ranks(choices(found, None, None))
    return next(each for each in found if each.configuration.ranks == enough)


def main() -> None:
    """Print the table and draw the figure of each kind beside each other's names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--profile", default="xeon-gold-6154-edr")
    parser.add_argument("--figure", type=Path, metavar="FILE.svg", help="one for each kind, numbered")
    parser.add_argument("--rows", type=int, default=ROWS)
    asked = parser.parse_args()
    profile = api.profile(asked.profile)
    model = SparsecastClusterModel().fit(ClusterTraining(profile.machine, profile.microbenchmarks))
    table = Table(
        title=f"{asked.rows:,} rows on {profile.name}: forecasts, nothing measured", title_justify="left"
    )
    for heading in ("matrix", "algorithm", "ends at", "time there", "most ranks", "time", "largest term"):
        table.add_column(heading, justify="left" if heading in ("matrix", "algorithm") else "right")
    for number, kind in enumerate(KINDS):
        lines = []
        for algorithm in ALGORITHMS:
            found = scaled(model, profile, kind, asked.rows, algorithm)
            last, ended = found[-1], end(found)
            largest, seconds = max(last.terms, key=lambda term: term[1])
            share = seconds / sum(value for _, value in last.terms)
            ranks = f"{ended.configuration.ranks:,}" if ended is not last else "not"
            table.add_row(
                *(kind.name, algorithm, ranks, time(ended.time_s)),
                *(f"{last.configuration.ranks:,}", time(last.time_s), f"{largest} {100 * share:.0f} %"),
            )
            counts = tuple(each.configuration.ranks for each in found)
            lines.append(Scaling(algorithm, counts, tuple(each.time_s for each in found), None, None))
        if asked.figure is not None:
            path = asked.figure.with_stem(f"{asked.figure.stem}-{number + 1}")
            draw(lines, f"{kind.name}, {asked.rows:,} rows, on {profile.name}", path)
    Console(width=130).print(table)


if __name__ == "__main__":
    main()
