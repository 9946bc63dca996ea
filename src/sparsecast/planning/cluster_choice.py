"""The choice of a distributed product: forecasts, what they cost, and where more ranks do not pay."""

from __future__ import annotations

from collections.abc import Iterable

from sparsecast.models.clusters.cluster_model import ClusterForecast
from sparsecast.results.cluster import WORTHWHILE, ClusterChoice
from sparsecast.results.placement import price_of


def choices(
    forecasts: Iterable[ClusterForecast],
    one_rank_s: float | None,
    price: float | None,
    objective: str = "time",
) -> tuple[ClusterChoice, ...]:
    """Return forecasts as choices, the least of an objective first.

    `one_rank_s` is the time of the fastest product on one rank, `price` that of a node and hour. All
    forecasts have joules where `objective`, one of OBJECTIVES, is not time.
    """

    def least(choice: ClusterChoice) -> float:
        time_s, joules = choice.forecast.time_s, choice.forecast.energy_j
        if objective == "time" or joules is None:
            return time_s
        return joules * time_s if objective == "edp" else joules

    choices = []
    for forecast in forecasts:
        ranks, nodes = forecast.configuration.ranks, forecast.configuration.nodes
        efficiency = None if one_rank_s is None else one_rank_s / (ranks * forecast.time_s)
        choices.append(ClusterChoice(forecast, efficiency, price_of(forecast.time_s, price, nodes)))
    return tuple(sorted(choices, key=least))


def enough_ranks(choices: Iterable[ClusterChoice]) -> int | None:
    """Return the number of ranks from which on more do not pay; None without a choice."""
    best: dict[int, float] = {}
    for choice in choices:
        ranks, time_s = choice.forecast.configuration.ranks, choice.forecast.time_s
        best[ranks] = min(time_s, best.get(ranks, time_s))
    if not best:
        return None
    enough_s = (1 + WORTHWHILE) * min(best.values())
    return min(ranks for ranks, time_s in best.items() if time_s <= enough_s)
