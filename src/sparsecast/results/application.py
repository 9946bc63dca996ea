"""Costs of applications: the forecast of a whole run, and a measured run beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sparsecast.operators.applications.application import Iterations
from sparsecast.results.plan import Plan


@dataclass(frozen=True, slots=True)
class LoopCost:
    """Forecast seconds of one run of a loop, with the ends of the interval; None where nothing tells them."""

    name: str
    time_s: float
    low_s: float | None
    high_s: float | None
    is_once: bool = False

    def runs(self, iterations: int) -> int:
        """Return how often the loop runs."""
        return 1 if self.is_once else iterations


@dataclass(frozen=True, slots=True)
class ApplicationCost:
    """What a whole run will cost.

    Attributes
    ----------
    application : str
    profile : str
        Its name.
    iterations : Iterations
    plan : Plan
        Of the products, for the iterations expected.
    loops : tuple of LoopCost
        The product among them.
    energy_j : float or None
        None where no energy was ever measured.
    notes : tuple of str
    """

    application: str
    profile: str
    iterations: Iterations
    plan: Plan
    loops: tuple[LoopCost, ...]
    energy_j: float | None
    notes: tuple[str, ...]

    @property
    def time_s(self) -> float:
        """Seconds of the run: conversion and expected iterations."""
        return self.total_s({loop.name: loop.time_s for loop in self.loops}, self.iterations.expected)

    @property
    def low_s(self) -> float | None:
        """Seconds with the fewest iterations and the low ends of all loops."""
        ends = {loop.name: loop.low_s for loop in self.loops}
        return self._end(ends, self.iterations.low)

    @property
    def high_s(self) -> float | None:
        """Seconds with the most iterations and the high ends of all loops."""
        ends = {loop.name: loop.high_s for loop in self.loops}
        return self._end(ends, self.iterations.high)

    @property
    def format(self) -> str:
        """The formats of the plan, joined by a plus."""
        return "+".join(dict.fromkeys(block.candidate.format for block in self.plan.blocks))

    def total_s(self, seconds: Mapping[str, float], iterations: int) -> float:
        """Return the seconds of a run of which the loops take so long, conversion included."""
        return self.plan.convert_s + sum(each.runs(iterations) * seconds[each.name] for each in self.loops)

    def shares(self) -> dict[str, float]:
        """Return the share of each loop in the expected run, without the conversion."""
        seconds = {loop.name: loop.runs(self.iterations.expected) * loop.time_s for loop in self.loops}
        return {name: value / sum(seconds.values()) for name, value in seconds.items()}

    def _end(self, seconds: Mapping[str, float | None], iterations: int) -> float | None:
        known = {name: value for name, value in seconds.items() if value is not None}
        return self.total_s(known, iterations) if len(known) == len(seconds) else None


@dataclass(frozen=True, slots=True)
class LoopError:
    """Signed errors of the forecast of a loop: above 0 where it was too long.

    Attributes
    ----------
    relative : float
        Of the measured time (Barreda et al. 2020, equation 5).
    weighted : float
        Of the mean time of all loops (equations 6 and 7).
    """

    relative: float
    weighted: float


@dataclass(frozen=True, slots=True)
class ApplicationRun:
    """A run that was measured.

    Attributes
    ----------
    iterations : int
    stop : str
        Why it ended.
    time_s : float
        Of all loops, without conversion and compiling.
    loops : dict of str to float
        Seconds of one run of each loop, in the mean.
    residual : float
        The last one.
    energy_j : float or None
        None where nothing measured it.
    """

    iterations: int
    stop: str
    time_s: float
    loops: dict[str, float]
    residual: float
    energy_j: float | None = None

    def errors(self, cost: ApplicationCost) -> dict[str, LoopError]:
        """Return the errors of each loop's forecast."""
        mean_s = sum(self.loops.values()) / len(self.loops)
        forecast = {each.name: each.time_s for each in cost.loops}
        return {
            name: LoopError((forecast[name] - own) / own, (forecast[name] - own) / mean_s)
            for name, own in self.loops.items()
        }

    def weighted_error(self, cost: ApplicationCost) -> float:
        """Return the mean of the weighted errors (equation 8)."""
        errors = self.errors(cost).values()
        return sum(each.weighted for each in errors) / len(errors)

    def error(self, cost: ApplicationCost) -> float:
        """Return the error of the whole run, given the iterations that there were."""
        seconds = {each.name: each.time_s for each in cost.loops}
        forecast = cost.total_s(seconds, self.iterations) - cost.plan.convert_s
        return (forecast - self.time_s) / self.time_s
