"""Costs of applications: the JSON document, the table of loops, and what it comes to in sentences."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from sparsecast.reports.tables import energy, interval, time
from sparsecast.results.application import ApplicationCost, ApplicationRun


def document(matrix: str, cost: ApplicationCost, run: ApplicationRun | None) -> dict[str, Any]:
    """Return the JSON document of a cost, and of a run where there was one."""
    shares = cost.shares()
    return {
        "matrix": matrix,
        "profile": cost.profile,
        "application": cost.application,
        "iterations": {
            "expected": cost.iterations.expected,
            "low": cost.iterations.low,
            "high": cost.iterations.high,
            "tried": cost.iterations.tried,
        },
        "format": cost.format,
        "time_s": cost.time_s,
        "low_s": cost.low_s,
        "high_s": cost.high_s,
        "convert_s": cost.plan.convert_s,
        "energy_j": cost.energy_j,
        "loops": [
            {
                "name": loop.name,
                "time_s": loop.time_s,
                "low_s": loop.low_s,
                "high_s": loop.high_s,
                "runs": loop.runs(cost.iterations.expected),
                "share": shares[loop.name],
            }
            for loop in cost.loops
        ],
        "notes": list(cost.notes),
        "measured": None if run is None else _measured(cost, run),
    }


def _measured(cost: ApplicationCost, run: ApplicationRun) -> dict[str, Any]:
    errors = run.errors(cost)
    return {
        "iterations": run.iterations,
        "stop": run.stop,
        "residual": run.residual,
        "time_s": run.time_s,
        "energy_j": run.energy_j,
        "error": run.error(cost),
        "weighted_error": run.weighted_error(cost),
        "loops": [
            {
                "name": name,
                "time_s": seconds,
                "error": errors[name].relative,
                "weighted_error": errors[name].weighted,
            }
            for name, seconds in run.loops.items()
        ],
    }


def table(title: str, cost: ApplicationCost, run: ApplicationRun | None) -> Table:
    """Return the loops, those that take the most of the run first."""
    found = Table(title=title, title_justify="left", caption_justify="left")
    found.add_column("loop")
    for name in ("runs", "one run", "interval", "share"):
        found.add_column(name, justify="right")
    for name in ("measured", "error", "weighted") if run else ():
        found.add_column(name, justify="right")
    shares = cost.shares()
    errors = run.errors(cost) if run else {}
    for loop in sorted(cost.loops, key=lambda each: -shares[each.name]):
        own = (
            (
                time(run.loops[loop.name]),
                f"{100 * errors[loop.name].relative:+.0f} %",
                f"{100 * errors[loop.name].weighted:+.0f} %",
            )
            if run
            else ()
        )
        name = f"{loop.name}, {cost.format.upper()}" if loop is cost.loops[0] else loop.name
        ends = interval(loop.low_s, loop.high_s)
        runs = f"{loop.runs(cost.iterations.expected):,}"
        found.add_row(name, runs, time(loop.time_s), ends, f"{100 * shares[loop.name]:.0f} %", *own)
    if run:
        found.caption = "weighted: error over the mean of all loops (Barreda et al. 2020, equation 6)"
    return found


def sentences(cost: ApplicationCost, run: ApplicationRun | None) -> list[str]:
    """Return what a cost comes to, and what a run came to beside it."""
    known = cost.iterations
    counted = _iterations(known.expected)
    if known.low != known.high:
        counted += f" expected, {known.low:,} to {known.high:,}"
    said = [
        f"{counted}. {known.why}",
        f"Whole run on {cost.profile}: {time(cost.time_s)} ({interval(cost.low_s, cost.high_s)}), of them "
        f"{time(cost.plan.convert_s)} to convert; energy {energy(cost.energy_j)}.",
    ]
    if run is not None:
        errors = f"{100 * run.error(cost):+.0f} % off, {100 * run.weighted_error(cost):+.0f} % weighted"
        said.append(
            f"Measured: {_iterations(run.iterations)} ({run.stop}) in {time(run.time_s)}; the forecast for "
            f"as many is {errors}; energy {energy(run.energy_j)}."
        )
    return said


def _iterations(count: int) -> str:
    return f"{count:,} iteration{'' if count == 1 else 's'}"
