"""Costs of applications: the forecast of a whole run, and a measured run beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sparsecast.operators.applications.application import Iterations
from sparsecast.results.columns import INTERVAL, within
from sparsecast.results.plan import Plan
from sparsecast.system.tabular import Column, Columns, Table, keys
from sparsecast.system.texts import counted, energy, interval, percent, signed_percent, time


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
    power_w : float or None
        Of the product, and of each loop; None where no energy was ever measured.
    notes : tuple of str
    """

    application: str
    profile: str
    iterations: Iterations
    plan: Plan
    loops: tuple[LoopCost, ...]
    power_w: float | None
    notes: tuple[str, ...]

    @property
    def energy_j(self) -> float | None:
        """Joules of the run (Barreda et al. 2020, equation 4); None without a power."""
        return None if self.power_w is None else self.power_w * self.time_s

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
        return self.plan.convert_s + sum(loop.runs(iterations) * seconds[loop.name] for loop in self.loops)

    def shares(self) -> dict[str, float]:
        """Return the share of each loop in the expected run, without the conversion."""
        seconds = {loop.name: loop.runs(self.iterations.expected) * loop.time_s for loop in self.loops}
        return {name: value / sum(seconds.values()) for name, value in seconds.items()}

    def _end(self, seconds: Mapping[str, float | None], iterations: int) -> float | None:
        ends = {name: value for name, value in seconds.items() if value is not None}
        return self.total_s(ends, iterations) if len(ends) == len(seconds) else None


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
        forecast = {loop.name: loop.time_s for loop in cost.loops}
        return {
            name: LoopError(
                (forecast[name] - measured_s) / measured_s, (forecast[name] - measured_s) / mean_s
            )
            for name, measured_s in self.loops.items()
        }

    def weighted_error(self, cost: ApplicationCost) -> float:
        """Return the mean of the weighted errors (equation 8)."""
        errors = self.errors(cost).values()
        return sum(error.weighted for error in errors) / len(errors)

    def error(self, cost: ApplicationCost) -> float:
        """Return the error of the whole run, given the iterations that there were."""
        seconds = {loop.name: loop.time_s for loop in cost.loops}
        forecast = cost.total_s(seconds, self.iterations) - cost.plan.convert_s
        return (forecast - self.time_s) / self.time_s


@dataclass(frozen=True, slots=True)
class CostReport:
    """What a run of an application on a matrix will cost, and a measured run where there was one."""

    matrix: str
    cost: ApplicationCost
    run: ApplicationRun | None = None

    @property
    def loops(self) -> list[dict[str, Any]]:
        """Each loop with its runs, its share, and what was measured of it."""
        cost, shares = self.cost, self.cost.shares()
        errors = self.run.errors(cost) if self.run else {}
        return [
            {
                "loop": loop,
                "heading": f"{loop.name}, {cost.format.upper()}" if loop is cost.loops[0] else loop.name,
                "runs": loop.runs(cost.iterations.expected),
                "share": shares[loop.name],
                "measured_s": self.run.loops[loop.name] if self.run else None,
                "error": errors.get(loop.name),
                "energy_j": None if cost.power_w is None else cost.power_w * loop.time_s,
            }
            for loop in cost.loops
        ]

    @property
    def measured(self) -> dict[str, Any] | None:
        """The run with its errors, None without one."""
        if self.run is None:
            return None
        error, weighted = self.run.error(self.cost), self.run.weighted_error(self.cost)
        return {"run": self.run, "loops": self.loops, "error": error, "weighted_error": weighted}

    def table(self) -> Table:
        """Return the loops, those that take the most of the run first."""
        rows = sorted(self.loops, key=lambda row: -row["share"])
        explained = ("weighted: error over the mean of all loops (Barreda et al. 2020, equation 6)",)
        return Table(f"{self.cost.application} on {self.matrix}", LOOP, rows, explained if self.run else ())

    def sentences(self) -> list[str]:
        """Return what the run comes to, and what was measured."""
        cost, run, iterations = self.cost, self.run, self.cost.iterations
        expected = counted(iterations.expected, "iteration")
        if iterations.low != iterations.high:
            expected += f" expected, {iterations.low:,} to {iterations.high:,}"
        ends = interval(cost.low_s, cost.high_s)
        sentences = [
            f"{expected}. {iterations.why}",
            f"Whole run on {cost.profile}: {time(cost.time_s)} ({ends}), of which "
            f"{time(cost.plan.convert_s)} for conversion; energy {energy(cost.energy_j)}.",
        ]
        if run is not None:
            error, weighted = signed_percent(run.error(cost)), signed_percent(run.weighted_error(cost))
            sentences.append(
                f"Measured: {counted(run.iterations, 'iteration')} ({run.stop}) in {time(run.time_s)}; the "
                f"forecast for as many is {error} off, {weighted} weighted; energy {energy(run.energy_j)}."
            )
        return sentences


#: Of a loop in a CostReport.
LOOP: Columns = (
    Column("", "loop", "heading"),
    Column("name", value="loop.name", about='"SpMV" is the product'),
    Column("runs", "runs"),
    Column("time_s", "one run", "loop.time_s", about="of one run of the loop"),
    *within("loop", INTERVAL),
    Column("energy_j", "energy", about="of one run of the loop; null where no energy was measured"),
    Column("share", "share", text=percent, about="of the run without the conversion"),
    Column("", "measured", "measured_s", time),
    Column("", "error", "error.relative", signed_percent),
    Column("", "weighted", "error.weighted", signed_percent),
)

_MEASURED_LOOP: Columns = (
    Column("name", value="loop.name"),
    Column("time_s", value="measured_s"),
    Column("error", value="error.relative"),
    Column("weighted_error", value="error.weighted"),
)

#: The documents of commands, by how they are called.
DOCUMENTS: dict[str, Columns] = {
    "cost": (
        Column("matrix"),
        *within("cost", keys("profile", "application")),
        Column("iterations", value="cost.iterations", columns=keys("expected", "low", "high", "tried")),
        *within("cost", keys("format", "time_s", "low_s", "high_s")),
        Column("convert_s", value="cost.plan.convert_s"),
        *within("cost", keys("power_w", "energy_j")),
        Column("loops", columns=LOOP),
        Column("notes", value="cost.notes"),
        Column(
            "measured",
            columns=(
                *within("run", keys("iterations", "stop", "residual", "time_s", "energy_j")),
                Column("error", about="signed, as those below: equations 5 to 8 of Barreda et al. (2020)"),
                Column("weighted_error"),
                Column("loops", columns=_MEASURED_LOOP),
            ),
            about="null without --check; its time_s is without the conversion",
        ),
    ),
}
