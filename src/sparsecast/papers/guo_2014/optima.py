"""Optimal solutions (OPT) of section 5.2: planned with the fits, and measured where they are split."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sparsecast.api.executing import check
from sparsecast.api.trials import Trial, Trials
from sparsecast.benchmark.experiments import Setting
from sparsecast.devices.target import Target
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.machines.strips import strip_rows
from sparsecast.matrices.problem import GALLERY_PREFIX, Problem
from sparsecast.models.model import Model
from sparsecast.papers.guo_2014.planners.guo import GuoPlanner, refusal_of_ell, ties
from sparsecast.planning.dynamic_programme import Costs, strip_statistics
from sparsecast.planning.plan import make_plan
from sparsecast.results.plan import Plan


@dataclass(frozen=True, slots=True)
class Optimum:
    """The optimal solution of a matrix, by our fits or by those as printed.

    Attributes
    ----------
    whose : str
        ``"our fits"`` or ``"as printed"``.
    blocks : str
        As table 3 writes them.
    measured_s : float or None
        None where a split solution was not measured.
    whole_s : dict of str to float
        Measured times of the whole matrix, by format.
    """

    matrix: str
    whose: str
    blocks: str
    is_split: bool
    is_ell_refused: bool
    forecast_s: float
    measured_s: float | None
    whole_s: Mapping[str, float]

    @property
    def error(self) -> float | None:
        """Return |forecast - time| / time."""
        return abs(self.forecast_s - self.measured_s) / self.measured_s if self.measured_s else None

    def gain(self, name: str) -> float | None:
        """Return what it saves of the time of the whole matrix in a format."""
        whole_s = self.whole_s.get(name)
        return (whole_s - self.measured_s) / whole_s if whole_s and self.measured_s else None

    def row(self) -> dict[str, Any]:
        """Return it as a row of a table."""
        names = ("matrix", "whose", "blocks", "forecast_s", "measured_s", "error")
        gains = {f"gain_{name}": self.gain(name) for name in ("csr", "coo", "hyb")}
        return {**{name: getattr(self, name) for name in names}, **gains}


def optima(trials: Trials, named: Mapping[str, Problem], setting: Setting | None) -> Iterator[Optimum]:
    """Give both solutions of each matrix of the trials that is named, or in the gallery.

    Split ones are measured here with a `setting`; without one they are only planned.
    """
    of_matrices: dict[str, list[Trial]] = {}
    for trial in trials.rows:
        of_matrices.setdefault(trial.matrix, []).append(trial)
    ((ours, printed),) = trials.fitted
    for matrix, of_matrix in of_matrices.items():
        problem = named.get(matrix)
        if problem is None:
            if not matrix.startswith(GALLERY_PREFIX):
                continue
            problem = Problem.named(matrix)
        if setting is not None:
            setting.on_progress(setting.budget_s, setting.budget_s, f"optimal solutions of {problem.name}")
        for whose, model in (("our fits", ours), ("as printed", printed)):
            yield _optimum(trials, problem, of_matrix, whose, model, setting)


def _optimum(
    trials: Trials,
    problem: Problem,
    of_matrix: Sequence[Trial],
    whose: str,
    model: Model,
    setting: Setting | None,
) -> Optimum:
    first, machine, planner = of_matrix[0].candidate, trials.profile.machine, GuoPlanner()
    target = replace(Target.on(machine, first.dtype, None), threads=first.threads)
    strip = strip_rows(machine, target.threads)
    statistics = strip_statistics(problem.matrix.indptr, problem.structure, strip, planner.coarsening)
    plan = make_plan(statistics, model, target, machine, 1, planner)
    costs = Costs(model, target, machine, math.inf)
    blocks = (
        (
            block.first_row // strip + 1,
            math.ceil((block.last_row + 1) / strip),
            ties(statistics, costs, block),
        )
        for block in plan.blocks
    )
    return Optimum(
        problem.specification,
        whose,
        solution_text(blocks),
        len(plan.blocks) > 1,
        bool(refusal_of_ell(RowBlocks.of(problem.structure), costs)),
        plan.time_s,
        _measured_s(problem, plan, of_matrix, setting),
        {trial.candidate.format: trial.measured_s for trial in reversed(of_matrix)},
    )


def _measured_s(
    problem: Problem, plan: Plan, of_matrix: Sequence[Trial], setting: Setting | None
) -> float | None:
    """Return the time of a plan: of one block that of its Record, else measured here."""
    times_s = {trial.candidate: trial.measured_s for trial in of_matrix}
    if len(plan.blocks) == 1 and plan.blocks[0].candidate in times_s:
        return times_s[plan.blocks[0].candidate]
    return None if setting is None else check(problem, plan, device=setting.device).time_s


def solution_text(blocks: Iterable[tuple[int, int, Sequence[str]]]) -> str:
    """Return blocks of first strip, last strip and formats as table 3 writes them."""
    return ", ".join(f"[{first}, {last}] {'/'.join(formats).upper()}" for first, last, formats in blocks)
