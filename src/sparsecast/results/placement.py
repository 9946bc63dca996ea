"""A number of products in several places: machines, their GPUs, and many ranks, in one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from sparsecast.machines.machine import PROCESSOR
from sparsecast.models.clusters.cluster_model import ClusterForecast
from sparsecast.records import Forecast
from sparsecast.results.columns import TRANSFERRED_FROM, within
from sparsecast.results.plan import ANSWER, Plan
from sparsecast.system.tabular import Column, Columns, Table, Tabular, keys, lines_of
from sparsecast.system.texts import conversion, counted, energy, interval, time

_SECONDS_AN_HOUR = 3600


def price_of(seconds: float | None, an_hour: float | None, nodes: int = 1) -> float | None:
    """Return the price of some time on a number of nodes; None where time or price are unknown."""
    return None if seconds is None or an_hour is None else an_hour / _SECONDS_AN_HOUR * nodes * seconds


@dataclass(frozen=True, slots=True)
class Placement:
    """A number of products with a matrix in one place; matrix and vectors lie on the host before and after.

    Attributes
    ----------
    matrix, machine : str
        The machine is called by the name of its profile.
    way : Plan, Forecast or ClusterForecast
        How a product is done there: by a plan; where none can be made, as on a machine of published results,
        in the best format for the whole matrix; or on many ranks.
    products : int
    transfer_s : float or None
        Forecast seconds to bring x to the place and y back, once; 0 on a host, None where they are unknown.
        A plan's conversion includes the transfer of the matrix.
    price_per_hour : float or None
        Of the machine, or of one of its nodes, in any currency.
    is_here : bool
        Whether the place belongs to the machine that was asked, so that the plan can be built at once.
    is_tie : bool
        Whether its interval overlaps with that of the best place, so that either may be the best.
    notes : tuple of str
        As of a Prediction.
    """

    matrix: str
    machine: str
    way: Plan | Forecast | ClusterForecast
    products: int
    transfer_s: float | None = 0.0
    price_per_hour: float | None = None
    is_here: bool = False
    is_tie: bool = False
    notes: tuple[str, ...] = ()

    @property
    def plan(self) -> Plan | None:
        """The plan of the products, where there is one."""
        return self.way if isinstance(self.way, Plan) else None

    @property
    def device(self) -> str:
        if isinstance(self.way, ClusterForecast):
            return PROCESSOR
        return self.way.device if isinstance(self.way, Plan) else self.way.candidate.device

    @property
    def formats(self) -> str:
        """The formats in words, such as ``"SELL + CSR"``; how they store less is for the plan to tell."""
        way = self.way
        if isinstance(way, ClusterForecast):
            return way.configuration.format.upper()
        candidates = [block.candidate for block in way.blocks] if isinstance(way, Plan) else [way.candidate]
        return " + ".join(dict.fromkeys(candidate.format.upper() for candidate in candidates))

    @property
    def ranks(self) -> int | None:
        return self.way.configuration.ranks if isinstance(self.way, ClusterForecast) else None

    @property
    def nodes(self) -> int:
        return self.way.configuration.nodes if isinstance(self.way, ClusterForecast) else 1

    @property
    def convert_s(self) -> float | None:
        """Seconds to build the formats, where that has a forecast: on ranks, the parts of each rank."""
        return None if isinstance(self.way, ClusterForecast) else self.way.convert_s

    @property
    def before_s(self) -> float:
        """Seconds before the first product and after the last, if the vectors stay; 0 for unknown ones."""
        return (self.convert_s or 0.0) + (self.transfer_s or 0.0)

    @property
    def is_known_before(self) -> bool:
        """Whether all of `before_s` has a forecast."""
        return self.convert_s is not None and self.transfer_s is not None

    @property
    def total_s(self) -> float:
        """Seconds of all products, if x and y travel once."""
        return self.before_s + self.products * self.way.time_s

    @property
    def total_low_s(self) -> float | None:
        """End of the interval of `total_s`: that of the products, as that of conversions is unknown."""
        return self._all(self.way.low_s, self.before_s)

    @property
    def total_high_s(self) -> float | None:
        """The other end."""
        return self._all(self.way.high_s, self.before_s)

    @property
    def travelling_s(self) -> float:
        """Seconds of all products, if x and y travel for every one."""
        return (self.convert_s or 0.0) + self.products * (self.way.time_s + (self.transfer_s or 0.0))

    @property
    def total_j(self) -> tuple[float | None, float | None, float | None]:
        """Joules of all products, without the conversion, and the ends of their interval."""
        way = self.way
        return self._all(way.energy_j), self._all(way.energy_low_j), self._all(way.energy_high_j)

    @property
    def prices(self) -> tuple[float | None, float | None, float | None]:
        """The price of `total_s`, and the ends of its interval."""
        low, price, high = (
            price_of(seconds, self.price_per_hour, self.nodes)
            for seconds in (self.total_low_s, self.total_s, self.total_high_s)
        )
        return price, low, high

    def _all(self, of_one: float | None, before: float = 0.0) -> float | None:
        return None if of_one is None else before + self.products * of_one


def _named(placement: Placement) -> str:
    on = "" if placement.ranks is None else f", {counted(placement.ranks, 'rank')}"
    return f"{placement.machine}{on}{' (here)' if placement.is_here else ''}"


def _ends(name: str, *keys: str, about: str) -> Columns:
    """Return a column for each member of a tuple, which is an attribute of a Placement."""

    def member(place: int) -> Callable[[Placement], float | None]:
        return lambda row: getattr(row, name)[place]

    return tuple(Column(key, value=member(place), about=about) for place, key in enumerate(keys))


#: Of a Placement.
PLACEMENT: Columns = (
    *keys("matrix"),
    *keys("machine", "device"),
    Column("", "place", _named),
    Column("here", value="is_here", about="whether the machine is the one that was asked"),
    Column("formats", "format"),
    Column("ranks", about="null for one process"),
    *keys("nodes", "products"),
    *(Column(key, value=f"way.{key}", about="of one product") for key in ("time_s", "low_s", "high_s")),
    *keys("convert_s"),
    Column("transfer_s", about="of x and y, once; null where it is unknown"),
    Column("", "before", lambda row: row.before_s if row.is_known_before else None, conversion),
    Column("total_s", "all products", about="with conversion, if x and y travel once; unknown ones are 0"),
    *keys("total_low_s", "total_high_s"),
    Column("", "interval", lambda row: (row.total_low_s, row.total_high_s), lambda ends: interval(*ends)),
    Column("travelling_s", about="if x and y travel for every product"),
    *_ends("total_j", "energy_j", "energy_low_j", "energy_high_j", about="of all products"),
    Column("", "energy", lambda row: row.total_j[0], energy),
    *_ends("prices", "price", "price_low", "price_high", about="null without --price"),
    Column("", "price", lambda row: row.prices[0], "{:.3g}".format),
    Column("tie", value="is_tie", about="the interval overlaps with that of the best"),
    *keys("notes"),
    *within("plan", (TRANSFERRED_FROM,)),
)

#: Of Placements.
PLACEMENTS: Columns = (
    Column("placements", columns=PLACEMENT, about="the best first"),
    Column(
        "best_from",
        value=lambda answer: [{"products": count, "place": place} for count, place in answer.best_from],
        columns=(*keys("products"), *within("place", keys("machine", "device", "ranks"))),
        about="from so many products on, of places whose conversion and copies are known",
    ),
    Column("break_even_iterations", about="from which on the place with the fastest product is the best"),
    Column("refused", about="{place: reason}"),
)


@dataclass(frozen=True, slots=True)
class Placements(Tabular):
    """The placements of a matrix, the one with the least `total_s` first.

    Attributes
    ----------
    best_from : tuple of (int, Placement)
        From how many products on each of the `comparable` ones is the best, by its plan or by plain CSR,
        until the next one is.
    refused : dict of str to str
        Places that have no forecast, and why.
    """

    placements: tuple[Placement, ...]
    best_from: tuple[tuple[int, Placement], ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)

    @property
    def best(self) -> Placement:
        """The placement with the least `total_s`."""
        return self.placements[0]

    @property
    def comparable(self) -> list[Placement]:
        """Those of which conversion and copies are known, so that they can be compared for any number."""
        return [placement for placement in self.placements if placement.is_known_before]

    @property
    def fastest(self) -> Placement | None:
        """Of these the one with the fastest single product; of equals the one that is the soonest ready."""
        return min(self.comparable, key=lambda p: (p.way.time_s, p.before_s), default=None)

    @property
    def break_even_iterations(self) -> int | None:
        """Number of products from which on the fastest placement is the best.

        1 if it always is; None if there is nothing to compare it with, or if its product saves nothing.
        """
        if len(self.comparable) < 2:
            return None
        count, last = self.best_from[-1]
        return count if last is self.fastest else None

    @property
    def planned(self) -> Placement | None:
        """The best placement here that has a plan, else the best one elsewhere; None without a plan."""
        with_plan = [placement for placement in self.placements if placement.plan]
        return min(with_plan, key=lambda placement: not placement.is_here, default=None)

    def table(self, title: str = "") -> Table:
        """Return a row for each place, the best first."""
        below = below_of(self.placements, {self.best.matrix: self.refused} if self.refused else {})
        return Table(title or "Where to do the products", shown(self.placements), self.placements, below)

    def sentences(self) -> list[str]:
        """Return what the comparison comes to."""
        best, comparable, planned = self.best, self.comparable, self.planned
        price = "" if best.prices[0] is None else f", for {best.prices[0]:.3g}"
        sentences = [f"Best on {_named(best)}: {time(best.total_s)} in all{price}, if the vectors stay."]
        if not best.is_known_before and comparable:
            gain_s = comparable[0].total_s - best.total_s
            sentences.append(
                f"That is so if its conversion and copies, which are unknown, take less than {time(gain_s)}; "
                f"else {_named(comparable[0])} is best."
            )
        if len(self.best_from) > 1:
            steps = pairwise(self.best_from)
            spans = [f"{_named(place)} up to {count - 1:,}" for (_, place), (count, _) in steps]
            count, last = self.best_from[-1]
            sentences.append(f"By products: {', '.join(spans)}, {_named(last)} from {count:,} on.")
        elif len(comparable) > 1:
            sentences.append(f"{_named(self.best_from[0][1])} is best for any number of products.")
        travelling = min(comparable, key=lambda placement: placement.travelling_s, default=best)
        if comparable and travelling is not comparable[0]:
            total = f"{_named(travelling)} is best: {time(travelling.travelling_s)} in all."
            sentences.append(f"If x and y travel for every product, {total}")
        if planned is not best:
            below = f"the plan below is of {planned.machine}" if planned else "there is no plan here"
            sentences.append(f"A plan for {best.machine} can only be built there: {below}.")
        return sentences


@dataclass(frozen=True)
class Comparison:
    """The placements of several matrices, by their names."""

    answers: Mapping[str, Placements]

    @property
    def rows(self) -> list[Placement]:
        """Those of all matrices, the best first for each."""
        return [placement for answer in self.answers.values() for placement in answer.placements]

    @property
    def refused(self) -> dict[str, Mapping[str, str]]:
        """Why a machine has no row, by matrix and machine."""
        return {name: answer.refused for name, answer in self.answers.items() if answer.refused}

    def table(self, title: str) -> Table:
        """Return a row for each machine of each matrix."""
        rows = self.rows
        best = [answer.placements[0] for answer in self.answers.values() if answer.placements]
        matrix = Column("", "matrix", lambda row: row.matrix if row in best else "")
        return Table(title, (matrix, *shown(rows)), rows, below_of(rows, self.refused))


def shown(rows: Sequence[Placement]) -> Columns:
    """Return the columns of some placements, with their times over that of the best of their matrix."""
    best_s: dict[str, float] = {}
    for row in rows:
        best_s.setdefault(row.matrix, row.total_s)

    def ratio(row: Placement) -> tuple[float, bool]:
        return row.total_s / best_s[row.matrix], row.is_tie

    return (*PLACEMENT, Column("", "over the best", ratio, _ratio_text))


def _ratio_text(ratio: tuple[float, bool]) -> str:
    return f"{ratio[0]:.2f} x{' tie' if ratio[1] else ''}"


def below_of(rows: Sequence[Placement], refused: Mapping[str, Mapping[str, str]]) -> tuple[str, ...]:
    """Return the lines below a table: what columns mean, notes, and what is missing."""
    below = []
    if any(row.is_tie for row in rows):
        below.append("tie: the intervals overlap with that of the best, so either may be the best")
    if any(not row.is_known_before for row in rows):
        below.append("conversion and copies without a forecast are not counted: no time before the products")
    for name, machines in refused.items():
        named = {f"{name} on {machine}": why for machine, why in machines.items()}
        below += lines_of(named if len(refused) > 1 else dict(machines))
    return (*below, *notes_of(rows))


def notes_of(rows: Sequence[Placement]) -> list[str]:
    """Return the notes on forecasts, each once, after the machines that it is of."""
    machines: dict[str, dict[str, None]] = {}
    for row in rows:
        for note in row.notes:
            machines.setdefault(note, {})[row.machine] = None
    return [f"{', '.join(names)}: {note}" for note, names in machines.items()]


#: The documents of commands, by how they are called.
DOCUMENTS: dict[str, Columns] = {
    "compare": (
        Column("rows", columns=PLACEMENT, about="the best first for each matrix"),
        Column("refused", about="{matrix: {machine: reason}}"),
    ),
    "plan --where PLACE,PLACE": (*ANSWER, *within("placements", PLACEMENTS)),
}
