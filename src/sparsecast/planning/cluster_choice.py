"""The choice of a distributed product: forecasts, what they cost, and where more ranks do not pay."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sparsecast.features.structure import Structure
from sparsecast.models.clusters.cluster_model import ClusterForecast

#: More ranks pay where they make a product faster by more than this share.
WORTHWHILE = 0.05


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


def choices(
    forecasts: Iterable[ClusterForecast],
    one_rank_s: float | None,
    price: float | None,
    objective: str = "time",
) -> tuple[ClusterChoice, ...]:
    """Return forecasts as choices, the least of an objective first.

    Parameters
    ----------
    forecasts : iterable of ClusterForecast
    one_rank_s : float or None
        Time of the fastest product on one rank.
    price : float or None
        Of a node and hour.
    objective : str
        One of OBJECTIVES; other than by time, all forecasts have joules.
    """

    def least(choice: ClusterChoice) -> float:
        time_s, joules = choice.forecast.time_s, choice.forecast.energy_j
        if objective == "time" or joules is None:
            return time_s
        return joules * time_s if objective == "edp" else joules

    found = []
    for each in forecasts:
        ranks, nodes = each.configuration.ranks, each.configuration.nodes
        efficiency = None if one_rank_s is None else one_rank_s / (ranks * each.time_s)
        cost = None if price is None else price * nodes * each.time_s / 3600
        found.append(ClusterChoice(each, efficiency, cost))
    return tuple(sorted(found, key=least))


def enough_ranks(found: Iterable[ClusterChoice]) -> int | None:
    """Return the number of ranks from which on more do not pay; None without a choice."""
    best: dict[int, float] = {}
    for choice in found:
        ranks, time_s = choice.forecast.configuration.ranks, choice.forecast.time_s
        best[ranks] = min(time_s, best.get(ranks, time_s))
    if not best:
        return None
    enough_s = (1 + WORTHWHILE) * min(best.values())
    return min(ranks for ranks, time_s in best.items() if time_s <= enough_s)
