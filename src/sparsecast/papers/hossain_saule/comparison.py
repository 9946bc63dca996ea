"""Tables II to XI of the paper, and our forecasts next to them, for its cluster, from published figures.

What the paper measured of its cluster and does not print is fitted to its own forecasts. It prints the
processor, from which the time of a multiplication and addition follows, and the cache. STREAM's curve and the
times of messages are in figures without numbers. So that hossain-micro can be compared with the paper's
forecasts, each is found from one table, by least squares of relative residuals:

- table IV: bandwidth of a rank in CSR, and the time of a call from rank to rank;
- table V: bandwidth of a rank in COO, with that time of a call;
- table II: what computation leaves is Reduce and Bcast, half each;
- table VI: what computation leaves is Allgatherv.

Tables III and VII check it. With CSR's bandwidth for both formats III and V are missed: by table I, COO moves
more bytes than CSR in 1D, but the paper forecasts it to be faster.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from math import isqrt
from statistics import fmean, median
from typing import Any

import numpy as np

from sparsecast.machines.profile import Profile
from sparsecast.matrices.partitioning.distribution import Distribution
from sparsecast.matrices.partitioning.estimates import estimated_distribution
from sparsecast.models.clusters.cluster_model import ClusterForecast, ClusterTraining, Question
from sparsecast.models.clusters.network import COLLECTIVES
from sparsecast.models.clusters.sparsecast import SparsecastClusterModel
from sparsecast.papers import published
from sparsecast.papers.hossain_saule.micro import KINDS, HossainMicroCluster, spanned_nodes
from sparsecast.records import Configuration, DistributedRecord, MicroBenchmark
from sparsecast.results.paper import known_mean
from sparsecast.system.tabular import grouped

#: Tables of measured times: all algorithms and formats, with the forecasts of the paper's hossain-micro.
MEASURED = ("II", "III", "IV", "V", "VI", "VII")

#: What forecasts: hossain-micro with the inputs that the paper's forecasts tell; our model `sparsecast`,
#: fitted to the paper's times of the other graphs, in table XI of the other R-MAT matrices; the same model
#: from published figures alone.
MODELS = ("micro", "ours", "plain")

#: The tables that tell each input.
FITTED_TABLES = {"csr": "IV", "coo": "V", "2d": "II", "global-1d": "VI"}

#: Bytes of the triad and of the messages of which one time is known: any, as it is all that is measured.
_ANY_BYTES = 1 << 20

#: Least seconds of what computation leaves: the forecasts of the paper have two digits.
_LEAST_S = 1e-9

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
    def measured_s(self) -> float:
        assert self.actual_s is not None
        return self.actual_s

    @property
    def question(self) -> Question:
        """What is known of the matrix: graphs are meshes, R-MAT matrices have no such order."""
        way = self.configuration
        is_mesh = way.algorithm != "2d" and self.table != "XI"
        dimension = MESH_DIMENSION if is_mesh else None
        return Question(
            estimated_distribution(self.rows, self.rows, self.nnz, way.ranks, way.partition, dimension)
        )

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


@cache
def published_times() -> Sequence[PublishedTime]:
    """Return the rows of tables II to XI, in their order: a time or an error of a product each."""
    numbers = published("hossain_saule")
    counts = numbers["matrices"] | numbers["rmat"]
    file = resources.files("sparsecast.papers").joinpath("hossain_saule", "tables.csv")
    times = []
    for row in csv.DictReader(file.read_text(encoding="utf-8").splitlines()):
        name, matrix = row["format"], row["matrix"]
        algorithm, partition = ALGORITHMS[row["algorithm"]]
        way = Configuration(algorithm, name, name, partition, int(row["processes"]), int(row["nodes"]))
        columns = ("actual_s", "predicted_s", "error_percent")
        actual_s, predicted_s, percent = (float(row[key]) if row[key] else None for key in columns)
        error = None if percent is None else percent / 100
        rows, nnz = counts[matrix]["rows"], counts[matrix]["nnz"]
        times.append(PublishedTime(row["table"], matrix, rows, nnz, way, actual_s, predicted_s, error))
    return tuple(times)


def of_table(table: str) -> list[PublishedTime]:
    return [time for time in published_times() if time.table == table]


#: Returns what is known of the matrix of a time.
QuestionOf = Callable[[PublishedTime], Question]


@dataclass(frozen=True)
class ComparedTime:
    """A row of a table with our forecasts by MODELS.

    `actual_s` is the time that the paper measured; of table X that of the same product in tables II to VII.
    hossain-micro has no forecasts of R-MAT matrices, for which the paper prints none.
    """

    published: PublishedTime
    actual_s: float
    forecasts_s: Mapping[str, float]

    def error(self, model: str) -> float | None:
        """Return the relative error (section V.A.1) of one of MODELS; None without a forecast."""
        forecast_s = self.forecasts_s.get(model)
        return None if forecast_s is None else abs(forecast_s - self.actual_s) / self.actual_s

    @property
    def paper_error(self) -> float:
        """Of the paper's forecast, as printed, or from the printed times where it prints no error."""
        printed, forecast_s = self.published.error, self.published.predicted_s
        if printed is not None or forecast_s is None:
            return printed or 0.0
        return abs(forecast_s - self.actual_s) / self.actual_s


def compared_times(
    profile: Profile, question_of: QuestionOf, on_matrix: Callable[[str], None] = lambda matrix: None
) -> list[ComparedTime]:
    """Return tables II to XI with our forecasts, for the profile of the paper's cluster.

    `question_of` returns what is known of the matrix of a time among its ranks; `on_matrix` is called with
    each matrix that is left out.
    """

    def fitted(times: Iterable[PublishedTime]) -> SparsecastClusterModel:
        records = tuple(time.record(question_of(time).distribution) for time in times)
        return SparsecastClusterModel().fit(
            ClusterTraining(profile.machine, profile.microbenchmarks, records)
        )

    graphs = [time for table in MEASURED for time in of_table(table)]
    micro = fitted_inputs(profile, question_of).forecasts(graphs, question_of)
    forecasts_s = {time: {"micro": each.time_s} for time, each in zip(graphs, micro, strict=True)}
    plain = fitted([])
    rows: dict[tuple[str, Configuration], ComparedTime] = {}
    for alike in (graphs, of_table("XI")):
        for name, times in grouped(alike, lambda time: time.matrix).items():
            on_matrix(name)
            models = {"plain": plain, "ours": fitted(time for time in alike if time.matrix != name)}
            for time in times:
                way, question = time.configuration, question_of(time)
                ours = {each: model.forecast([way], question)[0].time_s for each, model in models.items()}
                rows[name, way] = ComparedTime(time, time.measured_s, forecasts_s.get(time, {}) | ours)
    return [replace(rows[time.matrix, time.configuration], published=time) for time in published_times()]


def summaries(rows: Iterable[ComparedTime]) -> list[dict[str, Any]]:
    """Return the mean errors by table, algorithm and format.

    `micro_distance` is the median distance of hossain-micro from the paper's forecasts, where the table has
    those, and `fitted` whether one of its inputs was fitted to the table.
    """
    found = []
    for (table, algorithm, name), group in grouped(rows, lambda row: row.published.key).items():
        distances = [
            abs(row.forecasts_s["micro"] / row.published.predicted_s - 1)
            for row in group
            if table in MEASURED and row.published.predicted_s
        ]
        found.append(
            {
                **{"table": table, "algorithm": algorithm, "format": name},
                "paper_error": fmean(row.paper_error for row in group),
                **{f"{model}_error": known_mean(row.error(model) for row in group) for model in MODELS},
                "micro_distance": median(distances) if distances else None,
                "fitted": table in FITTED_TABLES.values() if table in MEASURED else None,
            }
        )
    return found


def fastest_named(rows: Iterable[ComparedTime]) -> tuple[int, int]:
    """Return how often our fastest algorithm is the fastest, and the cases of a graph and ranks.

    Ties of measured times count as right.
    """
    measured = [row for row in rows if row.published.table in MEASURED]
    cases = grouped(measured, lambda row: (row.published.matrix, row.published.configuration.ranks))
    right = 0
    for case in cases.values():
        least_s = min(row.actual_s for row in case)
        fastest = {row.published.configuration.algorithm for row in case if row.actual_s == least_s}
        ours = min(case, key=lambda row: row.forecasts_s["ours"])
        right += ours.published.configuration.algorithm in fastest
    return right, len(cases)


@dataclass(frozen=True)
class FittedInputs:
    """Micro-benchmarks of the paper's cluster as its forecasts tell them.

    Of the `profile` of published figures the time of a multiplication and addition, and the cache, count. The
    bandwidth is that of a rank, by format; `call_s` is one call from rank to rank.
    """

    profile: Profile
    bandwidth_bytes_per_s: dict[str, float]
    call_s: float
    collectives: tuple[MicroBenchmark, ...] = ()

    def forecasts(self, times: Sequence[PublishedTime], question_of: QuestionOf) -> list[ClusterForecast]:
        machine, models = self.profile.machine, {}
        for name, bandwidth in self.bandwidth_bytes_per_s.items():
            points = [point for point in self.profile.microbenchmarks if point.kind == "fma"]
            for ranks in range(1, machine.cores + 1):  # the paper's bandwidth depends on the size alone
                points.append(_point("triad", ranks, 1, _ANY_BYTES, _ANY_BYTES / bandwidth, "IV, V"))
            points.append(_point("ping-pong", 2, 2, _ANY_BYTES, self.call_s, "IV"))
            training = ClusterTraining(machine, (*points, *self.collectives))
            models[name] = HossainMicroCluster(as_printed=True).fit(training)
        return [
            models[time.configuration.format].forecast([time.configuration], question_of(time))[0]
            for time in times
        ]


def fitted_inputs(profile: Profile, question_of: QuestionOf) -> FittedInputs:
    """Return the inputs that the paper does not print; `question_of` returns what is known of a matrix."""
    from scipy.optimize import nnls

    # At one byte a second, and a second for each call, the terms of the model are bytes and calls.
    none = tuple(_point(kind, 2, 1, _ANY_BYTES, 1.0, "none") for kind in COLLECTIVES)
    units = FittedInputs(profile, {"csr": 1.0, "coo": 1.0}, 1.0, none)
    relative = {name: _local_1d(units, of_table(FITTED_TABLES[name]), question_of) for name in ("csr", "coo")}
    columns, target = relative["csr"]
    (csr, call_s), _ = nnls(columns, target)
    columns, target = relative["coo"]
    (coo,), _ = nnls(columns[:, :1], target - call_s * columns[:, 1])
    bandwidths = {"csr": 1 / float(csr), "coo": 1 / float(coo)}
    computing = replace(units, bandwidth_bytes_per_s=bandwidths, call_s=float(call_s))
    times = [time for algorithm in ("2d", "global-1d") for time in of_table(FITTED_TABLES[algorithm])]
    points = []  # of what computation leaves of each forecast
    for time, forecast in zip(times, computing.forecasts(times, question_of), strict=True):
        assert time.predicted_s is not None and forecast.computation_s is not None
        way, left_s = time.configuration, max(time.predicted_s - forecast.computation_s, _LEAST_S)
        if way.algorithm == "global-1d":
            size = round(way.value_bytes * time.rows / way.ranks)
            points.append(_point("allgatherv", way.ranks, way.nodes, size, left_s, time.table))
            continue
        side = isqrt(way.ranks)
        size = way.value_bytes * -(-time.rows // side)
        for kind, nodes in zip(KINDS["2d"], spanned_nodes(way), strict=True):
            points.append(_point(kind, side, nodes, size, left_s / 2, time.table))
    return replace(computing, collectives=tuple(points))


def _local_1d(
    units: FittedInputs, times: Sequence[PublishedTime], question_of: QuestionOf
) -> tuple[np.ndarray, np.ndarray]:
    """Return bytes and calls of each time, and the seconds that they take, over the paper's forecast."""
    terms = [dict(forecast.terms) for forecast in units.forecasts(times, question_of)]
    columns = np.array([[term["sequential"] + term["misses"], term.get("ping-pong", 0.0)] for term in terms])
    predicted_s = np.array([time.predicted_s for time in times], dtype=float)
    return columns / predicted_s[:, None], 1 - np.array([term["FMA"] for term in terms]) / predicted_s


def _point(kind: str, ranks: int, nodes: int, size: int, time_s: float, table: str) -> MicroBenchmark:
    return MicroBenchmark(
        kind=kind,
        ranks=ranks,
        nodes=nodes,
        bytes=size,
        neighbours=None,
        time_s=time_s,
        noise=None,
        is_oversubscribed=False,
        measured_at=f"fitted to table {table}, not measured",
        version="published",
    )
