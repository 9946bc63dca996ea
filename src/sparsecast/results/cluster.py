"""Products on many ranks: forecasts, measurements, and scores of models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sparsecast.features.structure import Structure
from sparsecast.machines.machine import PROCESSOR
from sparsecast.matrices.problem import Problem, group_of
from sparsecast.models.clusters.cluster_model import ClusterForecast
from sparsecast.records import Configuration, DistributedRecord, product_flops
from sparsecast.results.columns import ENERGY, INTERVAL, matrix_column, within
from sparsecast.results.evaluation import ERROR_SCORE, ErrorScore
from sparsecast.results.placement import price_of
from sparsecast.system.tabular import Column, Columns, Table, keys, lines_of
from sparsecast.system.texts import counted, energy_interval, percent, percent_number, time

#: More ranks pay where they make a product faster by more than this share.
WORTHWHILE = 0.05

#: A choice counts as good where it takes at most this share longer than the fastest.
GOOD = 0.05


@dataclass(frozen=True)
class ClusterChoice:
    """One Configuration with its forecast, the time of the fastest product on one rank, and a price.

    `price` is of a node and hour; it and `one_rank_s` are None where they are unknown.
    """

    forecast: ClusterForecast
    one_rank_s: float | None = None
    price: float | None = None

    @property
    def efficiency(self) -> float | None:
        """Time on one rank over ranks times time."""
        used_s = self.forecast.configuration.ranks * self.forecast.time_s
        return None if self.one_rank_s is None else self.one_rank_s / used_s

    @property
    def cost(self) -> float | None:
        """Of one product, in the unit of the price."""
        return price_of(self.forecast.time_s, self.price, self.forecast.configuration.nodes)


def enough_ranks(forecasts: Iterable[ClusterForecast]) -> int:
    """Return the number of ranks from which on more do not pay, of one forecast at least.

    It is the fewest whose fastest product takes at most WORTHWHILE longer than the fastest of all.
    """
    times = [(forecast.configuration.ranks, forecast.time_s) for forecast in forecasts]
    enough_s = (1 + WORTHWHILE) * min(time_s for _, time_s in times)
    return min(ranks for ranks, time_s in times if time_s <= enough_s)


@dataclass(frozen=True)
class ClusterAnswer:
    """What the choice among Configurations rests on."""

    name: str
    structure: Structure
    profile: str
    model: str
    #: The least of the objective first: fastest, where nothing else was asked for.
    choices: tuple[ClusterChoice, ...]
    refused: Mapping[str, str]  # what has no forecast, and why
    notes: tuple[str, ...]
    objective: str = "time"  # one of OBJECTIVES

    @property
    def enough_ranks(self) -> int:
        """Of the numbers of ranks asked about, that of `enough_ranks`."""
        return enough_ranks(choice.forecast for choice in self.choices)

    def table(self) -> Table:
        """Return the choices in their order, and below them what has no forecast."""
        title = f"One product of {self.name} on {self.profile}, by the {self.model} model"
        explained = ["comm. share: share of communication; memory per rank: of the rank that needs most"]
        if any(choice.cost is not None for choice in self.choices):
            explained.append("per million: cost of a million products, in the unit of the price")
        return Table(title, CHOICE, self.choices, (*explained, *dict.fromkeys(self.refused.values())))

    def sentences(self) -> list[str]:
        """Return the first choice in words, and from how many ranks on more do not pay."""
        best = self.choices[0].forecast
        way = best.configuration
        costs = [time(best.time_s)]
        if best.energy_j is not None:
            costs.append(energy_interval(best.energy_j, best.energy_low_j, best.energy_high_j))
        sentences = [
            f"{_FIRST[self.objective]}: {way.algorithm} in {way.format.upper()} with {way.partition} on "
            f"{counted(way.ranks, 'rank')}, {' and '.join(costs)} per product."
        ]
        most = max(choice.forecast.configuration.ranks for choice in self.choices)
        if self.enough_ranks < most:
            gain = f"they gain at most {100 * WORTHWHILE:.0f} %"
            sentences.append(f"More than {counted(self.enough_ranks, 'rank')} do not pay: {gain}.")
        return sentences


@dataclass(frozen=True)
class MeasuredProduct:
    """A record, the seconds from a matrix on rank 0 to a product on all ranks, and what was forecast.

    There is no forecast where the profile of this machine has no micro-benchmarks of ranks.
    """

    record: DistributedRecord
    convert_s: float
    forecast: ClusterForecast | None = None


@dataclass(frozen=True)
class MeasuredOnRanks:
    """What was measured of a matrix, fastest first; complete on rank 0."""

    problem: Problem
    measured: Sequence[MeasuredProduct]
    refused: Mapping[str, str]
    notes: tuple[str, ...] = ()

    def table(self) -> Table:
        """Return the measurements, where their time goes, and what was refused."""
        explained = "local, comm., remote: of the rank that takes longest in each; waiting is communication"
        below = (explained, *lines_of(self.refused))
        return Table(f"Measured: {self.problem.name}", MEASURED, self.measured, below)


@dataclass(frozen=True, slots=True)
class ClusterRow:
    """A forecast of a measured product by a model that has not seen its group of matrices."""

    model: str
    record: DistributedRecord
    forecast: ClusterForecast

    @property
    def error(self) -> float:
        """Relative error of the time, without its sign (Hossain and Saule, section V.A.1)."""
        return abs(self.forecast.time_s - self.record.time_s) / self.record.time_s


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterScore(ErrorScore):
    """How good a model is."""

    unforecast: int  # measured products without a forecast of it
    #: Matrices and numbers of ranks with two measured ways or more, at least one of them forecast.
    choices: int
    #: found, good: share of the choices that were the fastest measured way, and of those that take at most
    #: GOOD longer.
    found: float | None
    good: float | None
    regret: float | None  # geometric mean of chosen over fastest time, minus 1


@dataclass(frozen=True)
class ClusterEvaluation:
    """Rows and scores, the best model first, and what was left out."""

    profile: str
    rows: tuple[ClusterRow, ...]
    models: Mapping[str, ClusterScore]
    refused: Mapping[str, str]
    oversubscribed: int

    def table(self) -> Table:
        """Return a row for each model, the best first."""
        title = f"Models of products on many ranks in percent, on kept products of {self.profile}"
        rows = [{"model": name, "score": score} for name, score in self.models.items()]
        explained = [
            "Each model forecasts matrices of groups that it has not seen. none: measured without a forecast",
            f"found: the choice was the fastest way; good: or takes at most {100 * GOOD:.0f} % longer",
        ]
        if self.oversubscribed:
            products = counted(self.oversubscribed, "product")
            explained.append(f"{products} on more ranks than cores: not scored")
        return Table(title, (Column("model", "model"), *within("score", SCORE)), rows, tuple(explained))


#: What the first choice is, for each objective.
_FIRST = {"time": "Fastest", "energy": "Least energy", "edp": "Least energy times time"}


def formats_of(way: Configuration) -> str:
    """Return the formats of both parts in words: one where they are alike."""
    return " + ".join(dict.fromkeys((way.format.upper(), way.remote_format.upper())))


def _communication_share(choice: ClusterChoice) -> float | None:
    """Return the share of communication, None where the model does not know it."""
    forecast = choice.forecast
    if forecast.communication_s is None or forecast.computation_s is None:
        return None
    both_s = forecast.communication_s + forecast.computation_s
    return forecast.communication_s / both_s if both_s else 0.0


def _longest(part: str) -> Callable[[MeasuredProduct], float | None]:
    """Return a function that gives the seconds of a part of a product, on the rank that takes longest."""
    return lambda product: max(product.record.parts_s.get(part) or (), default=None)


#: Of a Configuration.
CONFIGURATION: Columns = (
    Column("algorithm", "algorithm"),
    Column("", "format", formats_of),
    *keys("format", "remote_format"),
    Column("partition", "partition"),
    Column("ranks", "ranks"),
    Column("nodes", "nodes"),
)

#: Of a ClusterChoice.
CHOICE: Columns = (
    *within("forecast.configuration", (*CONFIGURATION, Column("dtype"))),
    *within("forecast", (Column("time_s", "time"), *INTERVAL, *ENERGY)),
    *within("forecast", keys("computation_s", "communication_s")),
    Column("", "comm. share", _communication_share, percent),
    Column("memory_bytes", "memory per rank", "forecast.memory_bytes", about="of the rank that needs most"),
    Column("efficiency", "efficiency", text=percent, about="time on one rank over ranks times time"),
    Column("cost", about="of one product; null without --price"),
    Column("", "per million", lambda choice: None if choice.cost is None else 1e6 * choice.cost),
    Column("why", value=lambda choice: dict(choice.forecast.terms), about="the terms of the model"),
)

#: Of a MeasuredProduct: the keys of one process, and those of ranks.
MEASURED: Columns = (
    *within("record.configuration", CONFIGURATION),
    Column("oversubscribed", value="record.is_oversubscribed", about="more ranks than cores"),
    Column("kernel", value=lambda row: None, about="null: the rule of each rank chooses"),
    Column("device", value=lambda row: PROCESSOR),
    Column("dtype", value="record.configuration.dtype"),
    Column("threads", value=lambda row: 1),
    Column("parameters", value=lambda row: {}),
    Column("time_s", "time", "record.time_s"),
    Column("spread", value="record.spread"),
    Column("noise", "noise", "record.noise", percent),
    Column(
        "gflops",
        "GFLOP/s",
        lambda row: product_flops(row.record.nnz, row.record.configuration.dtype) / row.record.time_s / 1e9,
        "{:.2f}".format,
    ),
    Column("convert_s", about="from the matrix on rank 0"),
    Column("energy_j", value=lambda row: None),
    Column("energy_source", value=lambda row: None),
    Column("error", "error", "record.error", "{:.1e}".format, about="over the rows of all ranks"),
    Column("parts_s", value="record.parts_s", about="of one product, by part and rank"),
    Column("", "local", _longest("local"), time),
    Column("", "comm.", _longest("communication"), time),
    Column("", "remote", _longest("remote"), time),
    Column("samples_s", value="record.samples_s"),
    Column("forecast_s", "forecast", "forecast.time_s"),
    Column("forecast_low_s", value="forecast.low_s"),
    Column("forecast_high_s", value="forecast.high_s"),
)

#: Of a ClusterRow.
ROW: Columns = (
    *within("record", keys("matrix", "nnz")),
    Column("group", value=lambda row: group_of(row.record.matrix)),
    *within("record.configuration", (*CONFIGURATION, Column("dtype"))),
    Column("model"),
    Column("predicted_s", value="forecast.time_s"),
    Column("measured_s", value="record.time_s"),
    Column("error"),
    *within("forecast", keys("low_s", "high_s")),
    *within("record", keys("noise", "measured_at")),
)

#: Of a ClusterScore.
SCORE: Columns = (
    *ERROR_SCORE,
    Column("unforecast", "none"),
    Column("choices", about="matrices and numbers of ranks with two measured ways or more"),
    Column("found", "found", text=percent_number),
    Column("good", "good", text=percent_number),
    Column("regret", "regret", text=percent_number),
)

#: The documents of commands, by how they are called.
DOCUMENTS: dict[str, Columns] = {
    "cluster": (
        matrix_column("name", "structure"),
        *keys("profile", "model"),
        Column("choices", columns=CHOICE, about="fastest first, or the least of --objective"),
        Column("enough_ranks", about="from which on more gain at most 5 %"),
        Column("refused", about="{what: reason}"),
        Column("notes"),
    ),
    "measure --algorithm": (
        matrix_column("problem.name", "problem.sampled_structure"),
        Column("measurements", value="measured", columns=MEASURED),
        Column("refused", about="{what: reason}"),
    ),
    "evaluate --replay --ranks": (
        Column("profile"),
        Column("rows", columns=ROW),
        Column("models", columns=SCORE, by="model", about="the best first"),
        Column("refused", about="{model: reason}"),
        Column("oversubscribed", about="products that are not scored"),
    ),
}
