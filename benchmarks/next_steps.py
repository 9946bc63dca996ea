"""Next steps, each done and measured: the gain that its sentence forecasts, and the one that is had."""

from __future__ import annotations

from statistics import geometric_mean
from typing import Any

import numpy as np
from scipy.sparse import csr_array

import sparsecast as sc
from experiment import Matrices, Rows, Threads, experiment, named
from sparsecast import api
from sparsecast.api import next_steps as api_next_steps
from sparsecast.matrices.problem import Problem

#: Of each kind of step at least one is due.
_MATRICES = ("circuit?n=400000", "poisson2d?n=700", "random?n=200000", "elasticity3d?n=24")


def _wide(problem: Problem) -> Problem:
    """Return a matrix whose indices have 64 bits, as those of many programs."""
    A = problem.matrix
    indices, indptr = (part.astype(np.int64) for part in (A.indices, A.indptr))
    return Problem.of(csr_array((A.data, indices, indptr), shape=A.shape), f"{problem.name}, 64 bits")


@experiment("Forecasts")
def next_steps(matrices: Matrices = None, threads: Threads = 2, most: int = 9, worth: float = 1.1) -> Rows:
    """Gain forecast and gain measured of every next step, for one product and for many."""
    api_next_steps.MOST_STEPS, api_next_steps.WORTH_NAMING = most, worth
    ratios = []
    for given in named(matrices, _MATRICES):
        for problem in (given, _wide(given)):
            for iterations in (1, 100_000):
                made = sc.plan(problem, products=iterations, threads=threads, probe_s=0, anyway=True)
                for step in api.forecast_next_steps(problem, sc.session(), made):
                    row = _done(problem, step)
                    ratios.append(row["measured gain"] / row["forecast gain"])
                    yield {"matrix": problem.name, "products": iterations, **row}
    errors = [abs(ratio - 1) for ratio in ratios]
    shown = f"{100 * float(np.median(errors)):.0f} % in the median and {100 * max(errors):.0f} % at most"
    mean = geometric_mean(ratios)
    yield f"{len(ratios)} steps: measured over forecast gain {mean:.2f} in the geometric mean."
    yield f"The measured gain differs from the forecast one by {shown}."


def _done(problem: Problem, step: Any) -> dict[str, Any]:
    """Return a step with what was measured of it and of what it replaces."""
    candidates = step.now.candidate, step.forecast.candidate
    several = {candidate.vectors for candidate in candidates}
    turns = [[each for each in candidates if each.vectors == number] for number in several]
    records = [record for turn in turns for record in sc.measure(problem, turn, keeps=False)]
    measured_s = {record.candidate: record.time_s / record.candidate.vectors for record in records}
    now_s, then_s = (measured_s[candidate] for candidate in candidates)
    now, forecast_s = step.now.time_s, step.time_s
    forecast = {"kind": step.kind, "now_s": now, "then_s": forecast_s, "forecast gain": step.gain}
    measured = {"measured now_s": now_s, "measured then_s": then_s, "measured gain": now_s / then_s}
    held = step.low_s is not None and step.low_s <= then_s <= step.high_s
    return {**forecast, **measured, "in interval": held}
