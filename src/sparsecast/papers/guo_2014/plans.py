"""The plan of Guo et al. (2014), section 4, as printed, and the optimal solutions (OPT) of section 5.2.

A plan has the least forecast time of one product (Fig. 8). Optimal solutions are planned with the fits, and
measured where they are split.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from time import perf_counter

from sparsecast.api.executing import check
from sparsecast.api.trials import WAYS, Trials
from sparsecast.benchmark.experiments import ExperimentSetting
from sparsecast.errors import FormatError
from sparsecast.features.row_blocks import RowBlocks, StripStatistics
from sparsecast.formats import FORMATS
from sparsecast.machines.machine import strip_rows
from sparsecast.matrices.problem import Problem
from sparsecast.planning.dynamic_programme import Costs, best_blocks, strip_statistics
from sparsecast.planning.plan import Goal, make_plan, rows_of
from sparsecast.planning.planners import PLANNERS, Planner
from sparsecast.results.plan import PlannedBlock
from sparsecast.system.tabular import grouped

#: Section 4: strips of "very large" matrices have 32 times the rows. The paper does not say from where on;
#: most strips in its table 3 are 1,489 (Webbase).
MOST_STRIPS, COARSENING = 1489, 32


@PLANNERS.register("guo")
class GuoPlanner(Planner):
    """The programme of Fig. 11 with the fits as printed: no gain is required, and no conversion counted."""

    def coarsening(self, strips: int) -> int:
        return COARSENING if strips > MOST_STRIPS else 1

    def blocks(self, statistics: StripStatistics, costs: Costs) -> list[PlannedBlock]:
        """Return the argmin of Fig. 8; of formats that tie, the first in the order of the model."""
        return best_blocks(statistics, replace(costs, products=math.inf))

    def notes(self, statistics: StripStatistics, costs: Costs, blocks: list[PlannedBlock]) -> tuple[str, ...]:
        notes = ["This is the plan of Guo et al. (2014): the fastest product, with no conversion counted."]
        for block in blocks:
            if len(tied := ties(statistics, costs, block)) > 1:
                names = " and ".join(name.upper() for name in tied)
                notes.append(f"Rows {block.first_row} to {block.last_row}: {names} have the same forecast.")
        if why := refusal_of_ell(RowBlocks.of(statistics.matrix), costs):
            notes.append(f"ELL is left out for all rows, which the paper's tool does not do: {why}")
        return tuple(notes)


def ties(statistics: StripStatistics, costs: Costs, block: PlannedBlock) -> list[str]:
    """Return the formats whose forecast of a block is the least: "ELL/HYB" in table 3."""
    rows, unpaid = rows_of(statistics, block), replace(costs, products=math.inf)
    times_s = {name: float(unpaid.of_blocks(rows, name)[0]) for name in costs.open_formats(statistics.matrix)}
    return [name for name, time_s in times_s.items() if time_s <= min(times_s.values())]


def refusal_of_ell(matrix: RowBlocks, costs: Costs) -> str:
    """Return why our limit of padding keeps ELL from a whole matrix; nothing where it does not."""
    ell, index_bytes = FORMATS.get("ell"), costs.target.index_bits // 8
    size_bytes = int(ell.predicted_bytes(matrix, costs.target.value_bytes, index_bytes)[0])
    try:
        ell.refuse_padding(int(matrix.nnz[0]), int(ell.stored_entries(matrix)[0]), size_bytes)
    except FormatError as error:
        return str(error)
    return ""


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
