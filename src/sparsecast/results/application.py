"""Costs of applications: the forecast of a whole run, and a measured run beside it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from sparsecast.operators.applications.application import PRODUCT, Iterations
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
    """What a whole run will cost."""

    application: str
    profile: str  # its name
    iterations: Iterations
    plan: Plan  # of the products, for the iterations expected
    loops: tuple[LoopCost, ...]  # the product first
    power_w: float | None  # of the product, and of each loop; None where no energy was ever measured
    notes: tuple[str, ...]
    convert_s: float  # of a conversion as it usually takes; the plan has that of a quick one
    convert_ends_s: tuple[float, float] | None = None  # ends of its interval; None where it is sure

    @property
    def energy_j(self) -> float | None:
        """Joules of the run (Barreda et al. 2020, equation 4); None without a power."""
        return None if self.power_w is None else self.power_w * self.time_s

    @property
    def time_s(self) -> float:
        """Seconds of the run: conversion and expected iterations."""
        return self.total_s(self.iterations.expected)

    @property
    def low_s(self) -> float | None:
        """Low end of the seconds: those of all loops and of the iterations rarely meet."""
        return self._end("low", -1)

    @property
    def high_s(self) -> float | None:
        """High end of the seconds, as the low one."""
        return self._end("high", 1)

    @property
    def trials_s(self) -> float:
        """Seconds that trials took, of iterations and of formats; the run is without them."""
        return self.iterations.tried_s + (self.plan.trials.used_s if self.plan.trials else 0.0)

    @property
    def format(self) -> str:
        """The formats of the plan, joined by a plus."""
        return "+".join(dict.fromkeys(block.candidate.format for block in self.plan.blocks))

    def total_s(self, iterations: int, seconds: Mapping[str, float] | None = None) -> float:
        """Return the seconds of a run with conversion; the loops take as long as forecast, or `seconds`."""
        each = {loop.name: loop.time_s for loop in self.loops} if seconds is None else seconds
        return self.convert_s + sum(loop.runs(iterations) * each[loop.name] for loop in self.loops)

    def shares(self) -> dict[str, float]:
        """Return the share of each loop in the expected run, without the conversion."""
        seconds = {loop.name: loop.runs(self.iterations.expected) * loop.time_s for loop in self.loops}
        return {name: value / sum(seconds.values()) for name, value in seconds.items()}

    def _end(self, end: str, side: int) -> float | None:
        """Return an end: independent factors, whose logarithms add like the sides of a right angle."""
        ends = {loop.name: getattr(loop, f"{end}_s") for loop in self.loops}
        if None in ends.values():
            return None
        convert_s = (self.convert_ends_s or (self.convert_s, self.convert_s))[side > 0]
        ends_s = (
            self.total_s(self.iterations.expected, ends),
            self.total_s(getattr(self.iterations, end)),
            self.time_s + convert_s - self.convert_s,
        )
        return self.time_s * math.exp(side * math.hypot(*(math.log(s / self.time_s) for s in ends_s)))


@dataclass(frozen=True, slots=True)
class ApplicationRun:
    """A run that was measured."""

    iterations: int
    stop: str  # why it ended
    time_s: float  # of all loops, without conversion and compiling
    loops: dict[str, float]  # seconds of one run of each loop, in the mean
    residual: float  # the last one
    product_s: float  # of a product alone, at full speed of the cores
    convert_s: float  # seconds that building took
    energy_j: float | None = None  # None where nothing measured it

    def errors(self, cost: ApplicationCost) -> dict[str, dict[str, float]]:
        """Return the signed errors of each loop's forecast, above 0 where it was too long.

        They are "relative" to the measured time (Barreda et al. 2020, equation 5), and "weighted": relative
        to the mean time of all loops (equations 6 and 7).
        """
        mean_s = fmean(self.loops.values())
        told_s = {loop.name: loop.time_s for loop in cost.loops}
        return {
            name: {"relative": (told_s[name] - took_s) / took_s, "weighted": (told_s[name] - took_s) / mean_s}
            for name, took_s in self.loops.items()
        }

    def weighted_error(self, cost: ApplicationCost) -> float:
        """Return the mean of the weighted errors (equation 8)."""
        return fmean(error["weighted"] for error in self.errors(cost).values())

    def terms(self, cost: ApplicationCost) -> list[dict[str, Any]]:
        """Return where the error of the whole run comes from: parts, and their shares of the measured run.

        The loops are compared for the iterations that there were, of which the last term tells what the
        forecast of their number makes of it, at the forecast speed. The hand-off is what a product takes
        within the run beyond that of the product alone.
        """
        done, alone_s = self.iterations, cost.plan.time_s
        product, *vectors = cost.loops
        parts = (
            ("conversion", cost.convert_s, self.convert_s),
            ("product", done * alone_s, done * self.product_s),
            ("hand-off", done * (product.time_s - alone_s), done * (self.loops[PRODUCT] - self.product_s)),
            (
                "vector loops",
                sum(loop.runs(done) * loop.time_s for loop in vectors),
                sum(loop.runs(done) * self.loops[loop.name] for loop in vectors),
            ),
            ("iterations", cost.time_s, cost.total_s(done)),
        )
        whole_s = self.convert_s + self.time_s
        return [
            {"name": name, "forecast_s": told_s, "measured_s": took_s, "share": (told_s - took_s) / whole_s}
            for name, told_s, took_s in parts
        ]

    def whole_error(self, cost: ApplicationCost) -> float:
        """Return the error of the whole run, of iterations and conversion too: the sum of its terms."""
        return cost.time_s / (self.convert_s + self.time_s) - 1

    def error(self, cost: ApplicationCost) -> float:
        """Return the error of the whole run, given the iterations that there were."""
        return (cost.total_s(self.iterations) - cost.convert_s - self.time_s) / self.time_s


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
        return {
            "run": self.run,
            "loops": self.loops,
            "error": self.run.error(self.cost),
            "weighted_error": self.run.weighted_error(self.cost),
            "whole_error": self.run.whole_error(self.cost),
            "terms": self.run.terms(self.cost),
        }

    def tables(self) -> list[Table]:
        """Return the loops, those that take the most of the run first; of a measured run also its error."""
        rows = sorted(self.loops, key=lambda row: -row["share"])
        title = f"{self.cost.application} on {self.matrix}"
        if self.run is None:
            return [Table(title, LOOP, rows)]
        explained = ("weighted: error over the mean of all loops (Barreda et al. 2020, equation 6)",)
        whole = f"Error of the whole run, {signed_percent(self.run.whole_error(self.cost))}"
        return [Table(title, LOOP, rows, explained), Table(whole, ERROR_TERM, self.run.terms(self.cost))]

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
            f"{time(cost.convert_s)} for conversion; energy {energy(cost.energy_j)}.",
        ]
        if cost.trials_s:
            sentences.append(f"Trials before it took {time(cost.trials_s)}.")
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

#: Of a part of the error of a whole run.
ERROR_TERM: Columns = (
    Column("name", "part"),
    Column("forecast_s", "forecast", about="for the iterations that there were"),
    Column("measured_s", "measured", about="of iterations: of so many as there were, at the forecast speed"),
    Column("share", "of the run", text=signed_percent, about="of the difference; all shares are whole_error"),
)

_MEASURED_LOOP: Columns = (
    Column("name", value="loop.name"),
    Column("time_s", value="measured_s"),
    Column("error", value="error.relative"),
    Column("weighted_error", value="error.weighted"),
)

ITERATIONS: Columns = keys("expected", "low", "high", "tried", "tried_s")

#: The documents of commands, by how they are called.
DOCUMENTS: dict[str, Columns] = {
    "cost": (
        Column("matrix"),
        *within("cost", keys("profile", "application")),
        Column("iterations", value="cost.iterations", columns=ITERATIONS),
        *within("cost", keys("format", "time_s", "low_s", "high_s")),
        Column("trials_s", value="cost.trials_s", about="of iterations and of formats, before the run"),
        Column("convert_s", value="cost.convert_s", about="as it usually takes, not as fast as in a plan"),
        *within("cost", keys("power_w", "energy_j")),
        Column("loops", columns=LOOP),
        Column("notes", value="cost.notes"),
        Column(
            "measured",
            columns=(
                *within("run", keys("iterations", "stop", "residual", "time_s", "energy_j")),
                *within("run", keys("convert_s", "product_s")),
                Column("error", about="signed, as those below: equations 5 to 8 of Barreda et al. (2020)"),
                Column("weighted_error"),
                Column("loops", columns=_MEASURED_LOOP),
                Column("whole_error", about="signed, with iterations and conversion"),
                Column("terms", columns=ERROR_TERM),
            ),
            about="null without --check; its time_s and error are without the conversion",
        ),
    )
}
