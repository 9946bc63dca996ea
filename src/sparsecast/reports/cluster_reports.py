"""Table and JSON document of the choice among products on many ranks."""

from __future__ import annotations

from rich.table import Table

from sparsecast.models.clusters.cluster_model import ClusterForecast
from sparsecast.planning.cluster_choice import WORTHWHILE
from sparsecast.reports.documents import Document, matrix
from sparsecast.reports.tables import energy, energy_interval, interval, size, time
from sparsecast.results.cluster import ClusterAnswer, ClusterChoice

#: What the first choice is, for each objective.
_BEST = {"time": "Fastest", "energy": "Least energy", "edp": "Least energy times time"}


def document(found: ClusterAnswer) -> Document:
    """Return the choices, the least of the objective first, and what they rest on."""
    return {
        "matrix": matrix(found.structure, found.name),
        "profile": found.profile,
        "model": found.model,
        "choices": [_choice(each) for each in found.choices],
        "enough_ranks": found.enough_ranks,
        "refused": dict(found.refused),
        "notes": list(found.notes),
    }


def _choice(found: ClusterChoice) -> Document:
    forecast, way = found.forecast, found.forecast.configuration
    return {
        "algorithm": way.algorithm,
        "format": way.format,
        "remote_format": way.remote_format,
        "partition": way.partition,
        "ranks": way.ranks,
        "nodes": way.nodes,
        "dtype": way.dtype,
        "time_s": forecast.time_s,
        "low_s": forecast.low_s,
        "high_s": forecast.high_s,
        "computation_s": forecast.computation_s,
        "communication_s": forecast.communication_s,
        "memory_bytes": forecast.memory_bytes,
        "efficiency": found.efficiency,
        "energy_j": forecast.energy_j,
        "energy_low_j": forecast.energy_low_j,
        "energy_high_j": forecast.energy_high_j,
        "cost": found.cost,
        "why": dict(forecast.terms),
    }


def table(found: ClusterAnswer) -> Table:
    """Return the choices in their order, and below them what was refused."""
    shown = Table(
        title=f"One product of {found.name} on {found.profile}, by the {found.model} model",
        title_justify="left",
        caption_justify="left",
    )
    has_cost = any(each.cost is not None for each in found.choices)
    has_energy = any(each.forecast.energy_j is not None for each in found.choices)
    for heading in ("algorithm", "format", "partition"):
        shown.add_column(heading)
    costs = ("a million",) if has_cost else ()
    energies = ("energy",) if has_energy else ()
    headings = (
        *("ranks", "nodes", "time", "interval"),
        *energies,
        *("commun.", "a rank", "efficiency"),
        *costs,
    )
    for heading in headings:
        shown.add_column(heading, justify="right", no_wrap=True)
    for each in found.choices:
        shown.add_row(*_cells(each, has_cost=has_cost, has_energy=has_energy))
    lines = ["commun.: share of communication; a rank: memory of the rank that needs most"]
    if has_cost:
        lines.append("a million: cost of a million products, in the unit of the price")
    shown.caption = "\n".join([*lines, *dict.fromkeys(found.refused.values())])
    shown.min_width = max(len(line) for line in (str(shown.title), *lines))
    return shown


def _cells(found: ClusterChoice, *, has_cost: bool, has_energy: bool) -> tuple[str, ...]:
    forecast, way = found.forecast, found.forecast.configuration
    names = [way.format, way.remote_format] if way.remote_format != way.format else [way.format]
    efficiency = "-" if found.efficiency is None else f"{100 * found.efficiency:.0f} %"
    return (
        way.algorithm,
        " + ".join(name.upper() for name in names),
        way.partition,
        f"{way.ranks:,}",
        f"{way.nodes:,}",
        time(forecast.time_s),
        interval(forecast.low_s, forecast.high_s),
        *((energy(forecast.energy_j),) if has_energy else ()),
        _share(forecast),
        size(forecast.memory_bytes),
        efficiency,
        *((("-" if found.cost is None else f"{1e6 * found.cost:.3g}"),) if has_cost else ()),
    )


def _share(found: ClusterForecast) -> str:
    """Return the share of communication; a model may not know it."""
    if found.communication_s is None or found.computation_s is None:
        return "-"
    both = found.communication_s + found.computation_s
    return f"{100 * found.communication_s / both:.0f} %" if both else "0 %"


def sentences(found: ClusterAnswer) -> list[str]:
    """Return in words the choice, and from how many ranks on more do not pay."""
    best = found.choices[0].forecast
    way = best.configuration
    costs = [time(best.time_s)]
    if best.energy_j is not None:
        costs.append(energy_interval(best.energy_j, best.energy_low_j, best.energy_high_j))
    said = [
        f"{_BEST[found.objective]}: {way.algorithm} in {way.format.upper()} with {way.partition} on "
        f"{way.ranks:,} ranks, {' and '.join(costs)} a product."
    ]
    most = max(each.forecast.configuration.ranks for each in found.choices)
    if found.enough_ranks is not None and found.enough_ranks < most:
        said.append(
            f"More than {found.enough_ranks:,} ranks do not pay: they gain at most {100 * WORTHWHILE:.0f} %."
        )
    return said
