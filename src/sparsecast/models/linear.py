"""A linear model of the work of a product: seconds a row, seconds a byte from memory.

For each format, the time is a sum of non-negative costs times counts that follow from the structure
(`work.py`). The costs are fitted to relative residuals on benchmark matrices by non-negative least squares,
so that no term can pay for another and every term can be read. What a byte beyond a cache costs is shared by
the formats that were measured there with those that were not. On a GPU each kernel of a format has its own
costs: each was measured on every matrix.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf, sqrt
from typing import ClassVar, Self

import numpy as np

from sparsecast.features.row_blocks import RowBlocks
from sparsecast.machines.machine import Machine
from sparsecast.models import MODELS
from sparsecast.models.fitting import Floats, fitted_costs, several_factors
from sparsecast.models.model import SCORED_SUITES, Model
from sparsecast.models.training import TrainingSet
from sparsecast.models.work import LEAST_OF_KIND, CountedWork, ProductWork, at_one_speed, capacity, unit_cost
from sparsecast.records import Candidate

#: Fewest Records a format is fitted to: as many as it has costs.
LEAST_RECORDS = 12

#: A format whose shortest product takes so many times the shortest of all was measured on large matrices.
_LARGE = 10


#: Work beyond a cache: what it is, the level, and how it is done, where that has a cost of its own.
_BEYOND = re.compile(r"(?P<what>.*) beyond L(?P<level>\d+)(?P<how>.*)")

#: A smaller cache is not looked for where the error has risen to so many times the least one.
_RISEN = 1.1


@dataclass(frozen=True)
class WorkCosts:
    """What a unit of each kind of work costs on a machine."""

    work: ClassVar[type[ProductWork]] = ProductWork

    machine: Machine
    #: For each format, or format and kernel, as `label` calls them, seconds for one unit of each kind.
    costs: dict[str, dict[str, float]] = field(default_factory=dict)
    #: Of each format, those with costs of their own.
    kernels: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def counted(cls, training: TrainingSet) -> tuple[Machine, list[CountedWork]]:
        """Return the work of Records, and the machine with as much of its last cache as their products find.

        A virtual machine has a part of the cache that its processor has, and other programs use it. The
        Records tell the part: with it, the costs that are fitted to them explain their times best.
        """
        machine, caches = training.machine, training.machine.product_caches
        of_one = training.where(lambda record: record.candidate.vectors == 1)

        def counted(size_bytes: int, training: TrainingSet) -> tuple[Machine, list[CountedWork]]:
            smaller = machine.with_last_cache(size_bytes)
            return smaller, at_one_speed(smaller, cls.work(smaller).counted(training), training.records)

        def error(size_bytes: int) -> float:
            smaller, work = counted(size_bytes, of_one)
            return cls.fitted(smaller, work).error(work)

        if not caches or machine.gpu is not None or not of_one.records:
            return machine, cls.work(machine).counted(training)
        threads = max(record.candidate.threads for record in of_one.records)
        last = caches[-1].bytes
        copies = capacity(caches[-1], threads) / last
        least = max((capacity(cache, threads) for cache in caches[:-1]), default=0.0) / copies
        most = max(record.traffic_bytes for record in of_one.records) / copies
        return counted(_found_bytes(last, least, most, error), training)

    @classmethod
    def fitted(
        cls,
        machine: Machine,
        counted: Sequence[CountedWork],
        costs_of: Callable[[Floats, Floats], Floats] = fitted_costs,
    ) -> Self:
        """Return the costs that explain work best, of each fit with enough of it."""
        fit = cls(machine)
        counted = [work.in_full(LEAST_OF_KIND) for work in counted]
        for work in counted:
            if len(work.places) >= LEAST_RECORDS:
                kernels = fit.kernels.get(work.format, ())
                fit.kernels[work.format] = (*kernels, work.kernel) if work.kernel else ()
                costs = costs_of(work.counts, work.time_s)
                fit.costs[work.label] = dict(zip(work.kinds, costs.tolist(), strict=True))
        served = [work for work in counted if work.label in fit.costs]
        fit._limit_start(served)
        fit._share_costs_beyond(served)
        return fit

    def _limit_start(self, counted: Sequence[CountedWork]) -> None:
        """Have products of a format that was measured on large matrices alone start as fast as any.

        The start would otherwise take over what is alike in all of these, and small matrices would be
        forecast to take as long.
        """
        least_s = min((float(work.time_s.min()) for work in counted), default=0.0)
        for work in counted:
            costs = self.costs[work.label]
            if work.time_s.min() > _LARGE * least_s and costs["start"] > least_s:
                others = np.array([kind != "start" for kind in work.kinds])
                rest = fitted_costs(work.counts[:, others], work.time_s - least_s)
                kinds = [kind for kind in work.kinds if kind != "start"]
                self.costs[work.label] = {"start": least_s, **dict(zip(kinds, rest.tolist(), strict=True))}

    def _share_costs_beyond(self, counted: Sequence[CountedWork]) -> None:
        """Give fits whose Records never went beyond a cache the median cost of those that did.

        A byte from memory takes as long in every format, whatever part of that a byte beyond a smaller cache
        takes already. Without this, a matrix larger than all that a format was measured on would be forecast
        at the speed of the cache.
        """
        kinds_of: dict[tuple[str, ...], dict[int, str]] = {}
        for kind in {kind for work in counted for kind in work.kinds}:
            if beyond := _BEYOND.fullmatch(kind):
                kinds_of.setdefault((beyond["what"], beyond["how"]), {})[int(beyond["level"])] = kind
        for kinds in kinds_of.values():
            nearer_s = dict.fromkeys(self.costs, 0.0)
            for _, kind in sorted(kinds.items()):
                own = {work.label: work.knows(kind) for work in counted if kind in work.kinds}
                known_s = [nearer_s[label] + self.costs[label][kind] for label in own if own[label]]
                for label, is_known in own.items():
                    if known_s and not is_known:
                        self.costs[label][kind] = max(0.0, float(np.median(known_s)) - nearer_s[label])
                    nearer_s[label] += self.costs[label][kind]

    def explained(self, work: CountedWork) -> Floats | None:
        """Return the seconds of each kind of counted work, shape (records, kinds); None if not served."""
        costs = self.costs.get(work.label)
        return None if costs is None else work.counts * [unit_cost(costs, kind) for kind in work.kinds]

    def error(self, counted: Sequence[CountedWork]) -> float:
        """Return the mean of |log(measured / explained)| of all that is served; infinite if nothing is."""
        errors = [
            np.log(work.time_s / np.maximum(terms_s.sum(axis=1), np.finfo(float).tiny))
            for work in counted
            if (terms_s := self.explained(work)) is not None
        ]
        return float(np.abs(np.concatenate(errors)).mean()) if errors else inf

    def label(self, candidate: Candidate) -> str:
        name = candidate.format
        return f"{name} {candidate.kernel}" if self.kernels.get(name) else name

    def terms(self, candidate: Candidate, blocks: RowBlocks) -> dict[str, Floats]:
        """Return the seconds that each kind of work costs each block, and their sum."""
        costs = self.costs[self.label(candidate)]
        work = self.work(self.machine).of(candidate, blocks)
        terms = {name: unit_cost(costs, name) * count for name, count in work.items()}
        time_s = np.sum(list(terms.values()), axis=0)
        # A fit may give a format no start of its own; then a matrix without entries would take no time.
        starts = [fitted["start"] for fitted in self.costs.values() if fitted["start"] > 0]
        least_s = np.maximum(min(starts, default=0.0) * work["start"], np.finfo(float).tiny)
        start_s = terms["start"] + np.maximum(least_s - time_s, 0.0)
        return {**terms, "start": start_s, "time_s": np.maximum(time_s, least_s)}


def _found_bytes(last: int, least: float, most: float, error: Callable[[int], float]) -> int:
    """Return the size of the least error: the last cache, halves of it above `least`, or between these.

    Sizes above `most`, which no product reaches, are all alike.
    """
    halves = [last >> halving for halving in range(1, last.bit_length()) if least < last >> halving <= most]
    errors = {last: error(last)}
    for half in halves:
        errors[half] = error(half)
        if errors[half] > _RISEN * min(errors.values()):
            break
    best = min(errors, key=errors.__getitem__)
    beside = (int(best / sqrt(2)), int(best * sqrt(2)))
    errors |= {size: error(size) for size in beside if least < size < min(last, most)}
    return min(errors, key=errors.__getitem__)


@MODELS.register("linear")
class LinearModel(Model):
    """One non-negative cost for each kind of work, fitted for each format, and on a GPU for each kernel."""

    name: ClassVar[str] = "linear"
    version: ClassVar[int] = 15
    takes_several: ClassVar[bool] = True
    costs_: WorkCosts

    @classmethod
    def learns_from(cls, suite: str) -> bool:
        """Tell whether it is fitted to the Records of a suite: also of one that only a plug-in measures."""
        return suite not in SCORED_SUITES

    def _fit(self, training: TrainingSet) -> None:
        of_one = training.where(lambda record: record.candidate.vectors == 1)
        self.costs_ = WorkCosts.fitted(*WorkCosts.counted(of_one))
        several = training.where(lambda r: r.candidate.vectors > 1 and self.serves(r.candidate)).records
        formats = np.array([record.candidate.format for record in several], dtype=str)
        forecasts_s = [self.values(r.candidate, RowBlocks.of(training.structure(r)))[0] for r in several]
        times_s = [record.time_s for record in several]
        self.several_ = several_factors(formats, np.log(times_s) - np.log(forecasts_s))

    def formats(self) -> list[str]:
        """Return the formats with at least LEAST_RECORDS benchmark Records, on a GPU of one kernel."""
        return list(self.costs_.kernels)

    def kernels(self, format_name: str) -> tuple[str, ...]:
        """Return a format's kernels with at least LEAST_RECORDS benchmark Records; none on a processor."""
        return self.costs_.kernels.get(format_name, ())

    def terms(self, candidate: Candidate, blocks: RowBlocks) -> dict[str, Floats]:
        factor = self.several_factor(candidate)
        return {name: factor * seconds for name, seconds in self.costs_.terms(candidate, blocks).items()}
