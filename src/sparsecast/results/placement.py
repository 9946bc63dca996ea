"""A number of products in several places: machines, their GPUs, and many ranks, in one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from sparsecast.machines.machine import PROCESSOR
from sparsecast.matrices.problem import Problem
from sparsecast.models.clusters.cluster_model import ClusterForecast
from sparsecast.records import Forecast
from sparsecast.results.columns import TRANSFERRED_FROM, matrix_column, within
from sparsecast.results.next_steps import NEXT_STEP, STEPS_ABOUT, NextStep
from sparsecast.results.plan import CHECK, PLAN, Plan, PlanCheck
from sparsecast.system.tabular import Column, Columns, Table, Tabular, keys, lines_of
from sparsecast.system.texts import conversion, counted, energy, interval, time

_SECONDS_AN_HOUR = 3600


class Ends(NamedTuple):
    """A value, and the ends of its interval; None where they are unknown."""

    value: float | None
    low: float | None
    high: float | None


def price_of(seconds: float | None, an_hour: float | None, nodes: int = 1) -> float | None:
    """Return the price of some time on a number of nodes; None where time or price are unknown."""
    return None if seconds is None or an_hour is None else an_hour / _SECONDS_AN_HOUR * nodes * seconds


@dataclass(frozen=True, slots=True)
class Placement:
    """Some products with a matrix in one place; matrix and vectors lie on the host before and after."""

    matrix: str
    machine: str  # the name of its profile
    #: How a product is done there: by a plan; where none can be made, as on a machine of published results,
    #: in the best format for the whole matrix; or on many ranks.
    way: Plan | Forecast | ClusterForecast
    products: int
    #: Forecast seconds to bring x to the place and y back, once; 0 on a host, None where they are unknown. A
    #: plan's conversion includes the transfer of the matrix.
    transfer_s: float | None = 0.0
    price_per_hour: float | None = None  # of the machine, or of one of its nodes, in any currency
    #: Whether the place belongs to the machine that was asked, so that the plan can be built at once.
    is_here: bool = False
    #: Whether its interval overlaps with that of the best place, so that either may be the best.
    is_tie: bool = False
    notes: tuple[str, ...] = ()  # as of a Prediction

    @property
    def plan(self) -> Plan | None:
        """The plan of the products, where there is one."""
        return self.way if isinstance(self.way, Plan) else None

    @property
    def device(self) -> str:
        if isinstance(self.way, Forecast):
            return self.way.candidate.device
        return self.way.device if isinstance(self.way, Plan) else PROCESSOR

    @property
    def formats(self) -> str:
        """The formats in words, such as ``"SELL + CSR"``; how they store less is for the plan to tell."""
        way = self.way
        if isinstance(way, Plan):
            names = [block.candidate.format for block in way.blocks]
        else:
            names = [(way.candidate if isinstance(way, Forecast) else way.configuration).format]
        return " + ".join(dict.fromkeys(names)).upper()

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
    def travelling_s(self) -> float:
        """Seconds of all products, if x and y travel for every one."""
        return (self.convert_s or 0.0) + self.products * (self.way.time_s + (self.transfer_s or 0.0))

    @property
    def total(self) -> Ends:
        """`total_s` and the ends of its interval: that of the products, as that of conversions is unknown."""
        return self._of_all(self.before_s, self.way.time_s, self.way.low_s, self.way.high_s)

    @property
    def energy(self) -> Ends:
        """Joules of all products, without the conversion, and the ends of their interval."""
        return self._of_all(0.0, self.way.energy_j, self.way.energy_low_j, self.way.energy_high_j)

    @property
    def price(self) -> Ends:
        """The price of `total_s`, and the ends of its interval."""
        return Ends(*(price_of(end, self.price_per_hour, self.nodes) for end in self.total))

    def _of_all(self, before: float, *of_one: float | None) -> Ends:
        return Ends(*(None if end is None else before + self.products * end for end in of_one))


def _named(placement: Placement) -> str:
    on = "" if placement.ranks is None else f", {counted(placement.ranks, 'rank')}"
    return f"{placement.machine}{on}{' (here)' if placement.is_here else ''}"


#: Of a Placement.
PLACEMENT: Columns = (
    *keys("matrix", "machine", "device"),
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
    Column("total_low_s", value="total.low"),
    Column("total_high_s", value="total.high"),
    Column("", "interval", lambda row: row.total[1:], lambda ends: interval(*ends)),
    Column("travelling_s", about="if x and y travel for every product"),
    Column("energy_j", "energy", "energy.value", energy, about="of all products"),
    Column("energy_low_j", value="energy.low"),
    Column("energy_high_j", value="energy.high"),
    Column("price", "price", "price.value", "{:.3g}".format, about="null without --price"),
    Column("price_low", value="price.low"),
    Column("price_high", value="price.high"),
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
    Column("break_even_products", about="from which on the place with the fastest product is the best"),
    Column("refused", about="{place: reason}"),
)


@dataclass(frozen=True, slots=True)
class Placements(Tabular):
    """The placements of a matrix, the one with the least `total_s` first."""

    placements: tuple[Placement, ...]
    #: From how many products on each of the `comparable` ones is the best, by its plan or by plain CSR, until
    #: the next one is.
    best_from: tuple[tuple[int, Placement], ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)  # places that have no forecast, and why

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
    def break_even_products(self) -> int | None:
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
        return PlacementsByMatrix({"": self}).table(title or "Where to do the products")

    def sentences(self) -> list[str]:
        """Return what the comparison comes to."""
        best, comparable = self.best, self.comparable
        price = "" if best.price.value is None else f", for {best.price.value:.3g}"
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
        return sentences


@dataclass(frozen=True)
class PlacementsByMatrix:
    """The placements of several matrices, by their names, and by name what each machine's profile holds."""

    answers: Mapping[str, Placements]
    machines: Mapping[str, str] = field(default_factory=dict)

    @property
    def rows(self) -> list[Placement]:
        """Those of all matrices, the best first for each."""
        return [placement for answer in self.answers.values() for placement in answer.placements]

    @property
    def refused(self) -> dict[str, Mapping[str, str]]:
        """Why a machine has no row, by matrix and machine."""
        return {name: answer.refused for name, answer in self.answers.items() if answer.refused}

    @property
    def notes(self) -> list[str]:
        """The notes on forecasts, each once, after the machines that it is of."""
        machines: dict[str, dict[str, None]] = {}
        for row in self.rows:
            for note in row.notes:
                machines.setdefault(note, {})[row.machine] = None
        return [f"{', '.join(names)}: {note}" for note, names in machines.items()]

    def table(self, title: str) -> Table:
        """Return a row for each place, the best of each matrix first, and below what is missing."""
        rows, several = self.rows, len(self.answers) > 1
        best = {answer.best.matrix: answer.best for answer in self.answers.values() if answer.placements}

        def matrix(row: Placement) -> str:
            return row.matrix if row is best[row.matrix] else ""

        def ratio(row: Placement) -> tuple[float, str]:
            return row.total_s / best[row.matrix].total_s, " tie" if row.is_tie else ""

        below = []
        if any(row.is_tie for row in rows):
            below.append("tie: the intervals overlap with that of the best, so either may be the best")
        if any(not row.is_known_before for row in rows):
            below.append(
                "conversion and copies without a forecast are not counted: no time before the products"
            )
        for name, machines in self.refused.items():
            of = f"{name} on " if several else ""
            below += lines_of({of + machine: why for machine, why in machines.items()})
        columns = (
            *([Column("", "matrix", matrix)] if several else []),
            *PLACEMENT,
            Column("", "over the best", ratio, lambda item: "{:.2f} x{}".format(*item)),
        )
        return Table(title, columns, rows, (*below, *self.notes))


@dataclass(frozen=True)
class PlanAnswer:
    """What `plan` answers: a plan, or places with the plan of the best one that has one."""

    problem: Problem
    products: int
    plan: Plan | None
    machine: str  # that the plan is for
    placements: Placements | None = None
    next_steps: tuple[NextStep, ...] = ()
    check: PlanCheck | None = None

    @property
    def title(self) -> str:
        return f"{counted(self.products, 'product')}: {self.problem.name}"

    @property
    def notes(self) -> list[str]:
        """Those of the plan, unless the table of places has them."""
        return [] if self.plan is None or self.placements else list(dict.fromkeys(self.plan.notes))

    def shown(self) -> list[Table | str]:
        """Return tables and sentences."""
        shown: list[Table | str] = []
        if self.placements:
            shown += [self.placements.table(f"Where to do {self.title}"), *self.placements.sentences()]
            if (best := self.placements.best) is not self.placements.planned:
                below = f"the plan below is of {self.machine}" if self.plan else "there is no plan here"
                shown.append(f"A plan for {best.machine} can only be built there: {below}.")
        if self.plan:
            shown += [self.plan.table(f"Plan for {self.title}"), *self.plan.sentences(self.machine)]
        shown += [step.sentence() for step in self.next_steps]
        if self.plan and self.check:
            shown += [self.check.table(self.plan), self.check.sentence(self.plan)]
        return shown


#: Of a PlanAnswer.
ANSWER: Columns = (
    matrix_column("problem.name", "problem.sampled_structure"),
    Column(
        "plan",
        value=lambda answer: answer if answer.plan else None,
        columns=(*within("plan", PLAN), Column("check", columns=CHECK, about="null without --check")),
    ),
    *within("plan", (TRANSFERRED_FROM,)),
    Column("next_steps", columns=NEXT_STEP, about=STEPS_ABOUT),
)

#: The documents of commands, by how they are called.
DOCUMENTS: dict[str, Columns] = {
    "compare": (
        Column("rows", columns=PLACEMENT, about="the best first for each matrix"),
        Column("refused", about="{matrix: {machine: reason}}"),
    ),
    "plan": ANSWER,
    "plan --where PLACE,PLACE": (*ANSWER, *within("placements", PLACEMENTS)),
}
