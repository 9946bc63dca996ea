"""Optimal solutions (OPT) of section 5.2: planned with the fits, and measured where they are split."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from time import perf_counter

from sparsecast.api.executing import check
from sparsecast.api.trials import WAYS, Trials
from sparsecast.benchmark.experiments import ExperimentSetting
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.machines.machine import strip_rows
from sparsecast.matrices.problem import Problem
from sparsecast.papers.guo_2014.planner import GuoPlanner, refusal_of_ell, ties
from sparsecast.planning.dynamic_programme import Costs, strip_statistics
from sparsecast.planning.plan import Goal, make_plan
from sparsecast.system.tabular import grouped


@dataclass(frozen=True, slots=True)
class Optimum:
    """The optimal solution of a matrix, by our fits or by those as printed.

    `way` is one of WAYS, and `blocks` are as table 3 writes them. `measured_s` is None where a split solution
    was not measured. `whole_s` are measured times of the whole matrix by format; of CSR in turn with a
    solution that was measured.
    """

    matrix: str
    way: str
    blocks: str
    is_split: bool
    is_ell_refused: bool
    forecast_s: float
    measured_s: float | None
    whole_s: Mapping[str, float]

    @property
    def error(self) -> float | None:
        return abs(self.forecast_s - self.measured_s) / self.measured_s if self.measured_s else None

    def gain(self, name: str) -> float | None:
        """Return the share of the time of the whole matrix in a format that it saves."""
        whole_s = self.whole_s.get(name)
        return (whole_s - self.measured_s) / whole_s if whole_s and self.measured_s else None


def optima(trials: Trials, setting: ExperimentSetting, start_s: float | None) -> Iterator[Optimum]:
    """Give both solutions of each matrix of the trials that can be made again.

    Split ones are measured here, within the budget of what began at `start_s`; without it they are planned
    alone.
    """
    target, machine, planner = trials.target, trials.profile.machine, GuoPlanner()
    strip = strip_rows(machine, target.threads)
    (models,) = trials.fitted
    of_matrices = {} if target.is_published else grouped(trials.rows, lambda trial: trial.matrix)
    for matrix, of_matrix in of_matrices.items():
        if (problem := Problem.rebuilt(matrix)) is None:
            continue
        used_s = 0.0 if start_s is None else perf_counter() - start_s
        setting.on_progress(min(used_s, setting.budget_s), setting.budget_s, f"plans of {problem.name}")
        device = None if start_s is None or used_s > setting.budget_s else setting.device
        for way, model in zip(WAYS, models, strict=True):
            statistics = strip_statistics(problem.matrix.indptr, problem.structure, strip, planner.coarsening)
            plan = make_plan(statistics, model, target, machine, Goal(1, planner=planner))
            costs = Costs(model, target, machine, math.inf)
            blocks = (
                f"[{block.first_row // strip + 1}, {math.ceil((block.last_row + 1) / strip)}] "
                f"{'/'.join(ties(statistics, costs, block)).upper()}"
                for block in plan.blocks
            )
            times_s = {trial.record.candidate: trial.record.time_s for trial in of_matrix}
            whole_s = {trial.record.candidate.format: trial.record.time_s for trial in reversed(of_matrix)}
            is_split = len(plan.blocks) > 1
            measured_s = None if is_split else times_s.get(plan.blocks[0].candidate)
            if measured_s is None and device is not None:
                checked = check(problem, plan, device=device)
                measured_s, whole_s["csr"] = checked.time_s, checked.baseline_s  # sampled in turn
            yield Optimum(
                matrix=problem.specification,
                way=way,
                blocks=", ".join(blocks),
                is_split=is_split,
                is_ell_refused=bool(refusal_of_ell(RowBlocks.of(problem.structure), costs)),
                forecast_s=plan.time_s,
                measured_s=measured_s,
                whole_s=whole_s,
            )
