"""Our forecasts next to the tables of the paper, for its cluster, from published figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Any

from sparsecast.machines.profile import Profile
from sparsecast.models.clusters.cluster_model import ClusterTraining
from sparsecast.models.clusters.sparsecast import SparsecastClusterModel
from sparsecast.papers.hossain_saule.fitted_inputs import FITTED_TABLES, QuestionOf, fitted_inputs
from sparsecast.papers.hossain_saule.published_times import PublishedTime, of_table, published_times
from sparsecast.records import Configuration
from sparsecast.results.paper import known_mean
from sparsecast.system.tabular import grouped

#: Tables of measured times: all algorithms and formats, with the forecasts of the paper's hossain-micro.
MEASURED = ("II", "III", "IV", "V", "VI", "VII")

#: What forecasts: hossain-micro with the inputs that the paper's forecasts tell; our model `sparsecast`,
#: fitted to the paper's times of the other graphs, in table XI of the other R-MAT matrices; the same model
#: from published figures alone.
MODELS = ("micro", "ours", "plain")


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
        return self._error(self.forecasts_s.get(model))

    @property
    def paper_error(self) -> float:
        """Of the paper's forecast, as printed, or from the printed times where it prints no error."""
        printed = self.published.error
        return printed if printed is not None else self._error(self.published.predicted_s) or 0.0

    def _error(self, forecast_s: float | None) -> float | None:
        return None if forecast_s is None else abs(forecast_s - self.actual_s) / self.actual_s


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
