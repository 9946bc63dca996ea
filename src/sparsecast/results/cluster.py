"""Products on many ranks: forecasts, measurements, and scores of models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sparsecast.features.structure import Structure
from sparsecast.matrices.problem import Problem
from sparsecast.models.clusters.cluster_model import ClusterForecast
from sparsecast.records import Configuration, DistributedRecord


@dataclass(frozen=True)
class ClusterChoice:
    """One Configuration with its forecast.

    Attributes
    ----------
    efficiency : float or None
        Time on one rank over ranks times time; None where one rank has no forecast.
    cost : float or None
        Of one product, in the unit of the price of a node and hour; None without a price.
    """

    forecast: ClusterForecast
    efficiency: float | None
    cost: float | None


@dataclass(frozen=True)
class ClusterAnswer:
    """What the choice among Configurations rests on.

    Attributes
    ----------
    choices : tuple of ClusterChoice
        The least of the objective first: fastest, where nothing else was asked for.
    refused : mapping of str to str
        What has no forecast, and why.
    enough_ranks : int or None
        Of the numbers of ranks asked about, the one from which on more do not pay: the fewest whose
        fastest product takes at most WORTHWHILE longer than the fastest of all.
    objective : str
        One of OBJECTIVES.
    """

    name: str
    structure: Structure
    profile: str
    model: str
    choices: tuple[ClusterChoice, ...]
    refused: Mapping[str, str]
    notes: tuple[str, ...]
    enough_ranks: int | None
    objective: str = "time"


@dataclass(frozen=True)
class MeasuredProduct:
    """A record, and the seconds from a matrix on rank 0 to a product on all ranks."""

    record: DistributedRecord
    convert_s: float


@dataclass(frozen=True)
class MeasuredOnRanks:
    """What was measured of a matrix, fastest first, and what was forecast before; complete on rank 0.

    Attributes
    ----------
    forecasts : mapping of Configuration to ClusterForecast
        Empty where the profile of this machine has no micro-benchmarks of ranks.
    """

    problem: Problem
    measured: Sequence[MeasuredProduct]
    forecasts: Mapping[Configuration, ClusterForecast]
    refused: Mapping[str, str]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClusterRow:
    """A forecast of a measured product by a model that has not seen its group of matrices.

    Attributes
    ----------
    error : float
        abs(predicted - measured) / measured (Hossain and Saule, section V.A.1).
    """

    model: str
    record: DistributedRecord
    forecast: ClusterForecast

    @property
    def error(self) -> float:
        """Relative error of the time."""
        return abs(self.forecast.time_s - self.record.time_s) / self.record.time_s


@dataclass(frozen=True, slots=True)
class ClusterScore:
    """How good a model is.

    Attributes
    ----------
    forecasts, unforecast : int
        Measured products that it has a forecast for, and the others.
    median_error, mean_error, p90_error : float
    coverage : float or None
        Share of the measurements within their intervals; None without intervals.
    choices : int
        Matrices and numbers of ranks with two measured ways or more, at least one of them forecast.
    found, good : float or None
        Share of the choices that were the fastest measured way, and of those that take at most GOOD longer.
    regret : float or None
        Geometric mean of chosen over fastest time, minus 1.
    median_noise : float or None
        Of the measurements.
    """

    forecasts: int
    unforecast: int
    median_error: float
    mean_error: float
    p90_error: float
    coverage: float | None
    choices: int
    found: float | None
    good: float | None
    regret: float | None
    median_noise: float | None


@dataclass(frozen=True)
class ClusterEvaluation:
    """Rows and scores, the best model first, and what was left out."""

    profile: str
    rows: tuple[ClusterRow, ...]
    models: Mapping[str, ClusterScore]
    refused: Mapping[str, str]
    oversubscribed: int
