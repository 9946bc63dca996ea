"""Our forecasts next to the tables of the paper, for its cluster, from published figures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Any

from sparsecast.machines.profile import Profile
from sparsecast.models.clusters.cluster_model import ClusterTraining
from sparsecast.models.clusters.sparsecast import SparsecastClusterModel
from sparsecast.papers.hossain_saule.fitted_inputs import FITTED_TABLES, QuestionOf, fitted_inputs
from sparsecast.papers.hossain_saule.published_times import PublishedTime, of_table, published_times
from sparsecast.records import Configuration

#: Tables of measured times: all algorithms and formats, with the forecasts of the paper's hossain-micro.
MEASURED = ("II", "III", "IV", "V", "VI", "VII")


@dataclass(frozen=True)
class ComparedTime:
    """A row of a table with our forecasts, in seconds.

    Attributes
    ----------
    published : PublishedTime
    actual_s : float
        Measured by the paper; of table X that of the same product in tables II to VII.
    micro_s : float or None
        By hossain-micro with the inputs that its forecasts tell; None of R-MAT matrices, for which it prints
        none.
    plain_s, ours_s : float
        By our model `sparsecast` from published figures alone, and fitted to the paper's times of the other
        graphs; in table XI of the other R-MAT matrices.
    """

    published: PublishedTime
    actual_s: float
    micro_s: float | None
    plain_s: float
    ours_s: float

    @property
    def paper_error(self) -> float:
        """Of the paper's forecast, as printed, or from the printed times where it prints no error."""
        if self.published.error is not None:
            return self.published.error
        return self.error(self.published.predicted_s) or 0.0

    def error(self, forecast_s: float | None) -> float | None:
        """Return the relative error of a forecast (section V.A.1); None of none."""
        return None if forecast_s is None else abs(forecast_s - self.actual_s) / self.actual_s


def compared_times(
    profile: Profile, question_of: QuestionOf, on_matrix: Callable[[str], None] = lambda matrix: None
) -> list[ComparedTime]:
    """Return tables II to XI with our forecasts.

    Parameters
    ----------
    profile : Profile
        Of the paper's cluster.
    question_of : callable
        Returns what is known of the matrix of a time among its ranks.
    on_matrix : callable
        Called with each matrix that is left out.
    """
    graphs = [time for table in MEASURED for time in of_table(table)]
    forecasts = fitted_inputs(profile, question_of).forecasts(graphs, question_of)
    micro_s = {time: forecast.time_s for time, forecast in zip(graphs, forecasts, strict=True)}
    plain = _fitted(profile, [], question_of)
    rows: dict[tuple[str, Configuration], ComparedTime] = {}
    for alike in (graphs, of_table("XI")):
        for name in dict.fromkeys(time.matrix for time in alike):
            on_matrix(name)
            of_others = _fitted(profile, [time for time in alike if time.matrix != name], question_of)
            for time in (time for time in alike if time.matrix == name):
                asked = [time.configuration], question_of(time)
                models_s = (model.forecast(*asked)[0].time_s for model in (plain, of_others))
                rows[name, time.configuration] = ComparedTime(
                    time, time.measured_s, micro_s.get(time), *models_s
                )
    return [replace(rows[time.matrix, time.configuration], published=time) for time in published_times()]


def _fitted(
    profile: Profile, times: Iterable[PublishedTime], question_of: QuestionOf
) -> SparsecastClusterModel:
    records = tuple(time.record(question_of(time).distribution) for time in times)
    return SparsecastClusterModel().fit(ClusterTraining(profile.machine, profile.microbenchmarks, records))


def summaries(rows: Iterable[ComparedTime]) -> list[dict[str, Any]]:
    """Return the mean errors by table, algorithm and format.

    `micro_distance` is the median distance of hossain-micro from the paper's forecasts, where the table has
    those, and `fitted` whether one of its inputs was fitted to the table.
    """
    groups: dict[tuple[str, str, str], list[ComparedTime]] = defaultdict(list)
    for row in rows:
        way = row.published.configuration
        groups[row.published.table, way.algorithm, way.format].append(row)
    return [
        {
            **dict(zip(("table", "algorithm", "format"), key, strict=True)),
            "paper_error": fmean(row.paper_error for row in group),
            "micro_error": _mean(row.error(row.micro_s) for row in group),
            "micro_distance": _distance(group) if key[0] in MEASURED else None,
            "fitted": key[0] in FITTED_TABLES.values() if key[0] in MEASURED else None,
            "plain_error": _mean(row.error(row.plain_s) for row in group),
            "ours_error": _mean(row.error(row.ours_s) for row in group),
        }
        for key, group in groups.items()
    ]


def fastest_named(rows: Iterable[ComparedTime]) -> tuple[int, int]:
    """Return how often our fastest algorithm is the fastest, and the cases of a graph and ranks.

    Ties of measured times count as right.
    """
    cases: dict[tuple[str, int], list[ComparedTime]] = defaultdict(list)
    for row in rows:
        if row.published.table in MEASURED:
            cases[row.published.matrix, row.published.configuration.ranks].append(row)
    right = 0
    for case in cases.values():
        least_s = min(row.actual_s for row in case)
        fastest = {row.published.configuration.algorithm for row in case if row.actual_s == least_s}
        right += min(case, key=lambda row: row.ours_s).published.configuration.algorithm in fastest
    return right, len(cases)


def _mean(errors: Iterable[float | None]) -> float | None:
    known = [error for error in errors if error is not None]
    return fmean(known) if known else None


def _distance(group: Sequence[ComparedTime]) -> float:
    return median(abs((row.micro_s or 0.0) / (row.published.predicted_s or 1.0) - 1) for row in group)
