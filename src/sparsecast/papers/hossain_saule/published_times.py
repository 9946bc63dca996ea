"""Tables II to XI of the paper: each time with its matrix, Configuration and the paper's forecast."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import product

from sparsecast.matrices.partitioning.distribution import Distribution
from sparsecast.matrices.partitioning.estimates import estimated_distribution
from sparsecast.models.clusters.cluster_model import Question
from sparsecast.papers import published
from sparsecast.records import Configuration, DistributedRecord

#: Our names of the paper's algorithms, with the partition of each.
ALGORITHMS = {
    "uniform-2d": ("2d", "uniform-2d"),
    "global-1d": ("global-1d", "metis"),
    "local-1d": ("local-1d", "metis"),
}

#: Dimension of the mesh that the graphs of tables II to X are taken for, where they are not at hand.
MESH_DIMENSION = 2


@dataclass(frozen=True)
class PublishedTime:
    """A row of a table.

    `actual_s` and `predicted_s` are measured and forecast by the paper; table X prints neither. `error` is
    that of the forecast, as printed; table XI prints none.
    """

    table: str
    matrix: str
    rows: int
    nnz: int
    configuration: Configuration
    actual_s: float | None
    predicted_s: float | None
    error: float | None

    @property
    def key(self) -> tuple[str, str, str]:
        return self.table, self.configuration.algorithm, self.configuration.format

    @property
    def distribution(self) -> Distribution:
        """The estimated Distribution: graphs are meshes, R-MAT matrices have no such order."""
        way = self.configuration
        is_mesh = way.algorithm != "2d" and self.table != "XI"
        dimension = MESH_DIMENSION if is_mesh else None
        return estimated_distribution(self.rows, self.rows, self.nnz, way.ranks, way.partition, dimension)

    @property
    def measured_s(self) -> float:
        assert self.actual_s is not None
        return self.actual_s

    @property
    def question(self) -> Question:
        return Question(self.distribution)

    def record(self, distribution: Distribution) -> DistributedRecord:
        """Return the measured time as models learn from it."""
        return DistributedRecord(
            configuration=self.configuration,
            matrix=f"published:hossain-saule/{self.matrix}",
            nnz=self.nnz,
            distribution=distribution.to_dict(),
            samples_s=(self.measured_s,),
            time_s=self.measured_s,
            spread=None,
            noise=None,
            error=None,
            is_oversubscribed=False,
            measured_at=f"published, table {self.table}",
            version="published",
            suite="published",
        )


def _rows(file: str) -> list[dict[str, str]]:
    text = resources.files("sparsecast.papers").joinpath("hossain_saule", file).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def _printed() -> Iterator[dict[str, str]]:
    """Give what the tables print, a time or an error of a product at once."""
    yield from _rows("tables_ii_to_ix.csv")
    # Tables X and XI have columns for each algorithm and format.
    kinds = list(product(("local-1d", "global-1d", "uniform-2d"), ("csr", "coo")))
    for (algorithm, name), row in product(kinds, _rows("table_x.csv")):
        error = row[f"{name} {algorithm}"]
        yield {**row, "table": "X", "algorithm": algorithm, "format": name, "error_percent": error}
    for row, (algorithm, name) in product(_rows("table_xi.csv"), kinds):
        times_s = {key: row[f"{name} {algorithm} {key}"] for key in ("actual_s", "predicted_s")}
        yield {**row, "table": "XI", "algorithm": algorithm, "format": name, **times_s}


@cache
def published_times() -> Sequence[PublishedTime]:
    """Return the rows of tables II to XI, in their order."""
    numbers = published("hossain_saule")
    counts = numbers["matrices"] | numbers["rmat"]
    times = []
    for row in _printed():
        name, matrix = row["format"], row["matrix"]
        algorithm, partition = ALGORITHMS[row["algorithm"]]
        way = Configuration(algorithm, name, name, partition, int(row["processes"]), int(row["nodes"]))
        columns = ("actual_s", "predicted_s", "error_percent")
        actual_s, predicted_s, percent = (float(row[key]) if row.get(key) else None for key in columns)
        error = None if percent is None else percent / 100
        rows, nnz = counts[matrix]["rows"], counts[matrix]["nnz"]
        times.append(PublishedTime(row["table"], matrix, rows, nnz, way, actual_s, predicted_s, error))
    return tuple(times)


def of_table(table: str) -> list[PublishedTime]:
    return [time for time in published_times() if time.table == table]
