"""Plans: how a matrix will be multiplied, the forecast cost, and from how many products on it pays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sparsecast.devices.target import Target, refuse_beyond_memory
from sparsecast.errors import InputError, MatrixSizeError, ProfileError, remedy_for
from sparsecast.features.row_blocks import RowBlocks, StripStatistics
from sparsecast.machines.machine import Machine
from sparsecast.models.forecaster import Forecaster
from sparsecast.planning.dynamic_programme import Costs, best_blocks, best_single_block
from sparsecast.planning.planners import Planner
from sparsecast.results.plan import Plan, PlannedBlock, amount

#: What a plan may make least: seconds, joules, or their product, each of all products and the conversion.
OBJECTIVES = ("time", "energy", "edp")


def refuse_objective(name: str) -> None:
    if name not in OBJECTIVES:
        remedy = remedy_for(name, OBJECTIVES, "name one")
        raise InputError(f"objective '{name}': expected one of {', '.join(OBJECTIVES)}; {remedy}")


#: A plan must be forecast to be faster than a simpler one by this share. Repeated measurements of one product
#: differ by 1 % in the median and by 8 % at the 90th percentile (docs/facts.md).
LEAST_GAIN = 0.05


@dataclass(frozen=True, slots=True)
class Goal:
    """What a plan is for, and what decides about it."""

    products: int  # products that will be done
    objective: str = "time"  # one of OBJECTIVES; other than time it needs `energy`
    energy: Forecaster | None = None  # a fitted model of joules
    planner: Planner | None = None  # of a paper, for the plan that this prints
    tried: PlannedBlock | None = None  # all rows in the way that trials found to be the best, as measured


def make_plan(
    statistics: StripStatistics, model: Forecaster, target: Target, machine: Machine, goal: Goal
) -> Plan:
    """Return the plan with the least forecast time of all products and the conversion together.

    Plain CSR, then one block in another format, come before what is forecast to be faster by less than
    LEAST_GAIN: such a difference is within the models' errors, and the simpler plan costs less if it is not
    there. `model` is fitted, and `machine` is the one that is asked about.

    With an objective other than time it is the one block with the least joules, or joules times seconds, of
    all products and the conversion; a conversion has the power of the product.

    A ProfileError says that the model cannot forecast plain CSR, which every plan is compared with; a
    MatrixSizeError that plain CSR, with x and y, exceeds the memory of the machine, or the plan of the
    planner does.
    """
    if "csr" not in model.formats():
        raise ProfileError(
            f"the {model.name} model knows {', '.join(model.formats())}: expected csr, which plans are "
            f"compared with; calibrate with a larger budget"
        )
    planner, energy, products = goal.planner, goal.energy, goal.products
    whole = statistics.blocks(np.array([0]), np.array([statistics.strips]))
    csr_bytes = int(target.format_bytes("csr", whole)[0])
    refuse_beyond_memory("CSR", csr_bytes, statistics.matrix, target, machine)
    costs = Costs(model, target, machine, products)
    baseline = costs.planned(whole, 0, "csr", is_full=True)
    if goal.tried is not None:
        blocks = [goal.tried]
    elif planner is not None:
        blocks = planner.blocks(statistics, costs)
        _refuse_excess(blocks, statistics, costs)
    else:
        blocks = _simplest(statistics, costs, baseline)
    if energy is not None and goal.objective != "time":
        blocks = [_least(statistics, costs, energy, goal.objective, baseline)]
    time_s = math.fsum(block.time_s for block in blocks)
    convert_s = math.fsum(block.convert_s for block in blocks)
    joules = (None, None, None) if energy is None else _joules(statistics, energy, blocks)
    intervals = [model.interval(block.candidate, block.time_s, statistics.matrix) for block in blocks]
    return Plan(
        blocks=tuple(blocks),
        products=products,
        time_s=time_s,
        low_s=_sum([low for low, _ in intervals]),
        high_s=_sum([high for _, high in intervals]),
        convert_s=convert_s,
        baseline=baseline,
        break_even_products=break_even(convert_s - baseline.convert_s, baseline.time_s - time_s),
        notes=planner.notes(statistics, costs, blocks) if planner else (),
        as_printed=planner is not None,
        energy_j=joules[0],
        energy_low_j=joules[1],
        energy_high_j=joules[2],
        objective=goal.objective,
    )


def _least(
    statistics: StripStatistics, costs: Costs, energy: Forecaster, objective: str, baseline: PlannedBlock
) -> PlannedBlock:
    """Return the block with the least of an objective; plain CSR where nothing saves LEAST_GAIN."""
    whole = statistics.blocks(np.array([0]), np.array([statistics.strips]))

    def total(block: PlannedBlock) -> float:
        joules = float(energy.values(block.candidate, whole)[0])
        total_s = costs.products * block.time_s + block.convert_s
        return amount(objective, total_s, joules / block.time_s * total_s)

    options = [
        block
        for name in costs.open_formats(statistics.matrix)
        if energy.serves((block := costs.planned(whole, 0, name)).candidate)
        and _fits([block], statistics, costs)
    ]
    best = min(options, key=total, default=baseline)
    is_known = energy.serves(baseline.candidate)
    return best if not is_known or total(best) * (1 + LEAST_GAIN) < total(baseline) else baseline


def _joules(
    statistics: StripStatistics, energy: Forecaster, blocks: Sequence[PlannedBlock]
) -> tuple[float | None, float | None, float | None]:
    """Return the joules of one product, low and high; None where the model does not serve a block."""
    if not all(energy.serves(block.candidate) for block in blocks):
        return None, None, None
    joules = [float(energy.values(block.candidate, rows_of(statistics, block))[0]) for block in blocks]
    ends = [
        energy.interval(block.candidate, value, statistics.matrix)
        for block, value in zip(blocks, joules, strict=True)
    ]
    return math.fsum(joules), _sum([low for low, _ in ends]), _sum([high for _, high in ends])


def rows_of(statistics: StripStatistics, block: PlannedBlock) -> RowBlocks:
    """Return the statistics of the rows of a block."""
    first, end = np.searchsorted(statistics.bounds, [[block.first_row], [block.last_row + 1]])
    return statistics.blocks(first, end)


def _simplest(statistics: StripStatistics, costs: Costs, baseline: PlannedBlock) -> list[PlannedBlock]:
    """Return the first of plain CSR, one block, and several that no other is faster than by LEAST_GAIN."""
    others = [best_single_block(statistics, costs)], best_blocks(statistics, costs)
    options = [
        [baseline],
        *(blocks for blocks in others if _fits(blocks, statistics, costs)),
    ]
    totals = [math.fsum(b.time_s + b.convert_s / costs.products for b in blocks) for blocks in options]
    most = min(totals) * (1 + LEAST_GAIN)
    return next(blocks for blocks, total in zip(options, totals, strict=True) if total <= most)


def _fits(blocks: Sequence[PlannedBlock], statistics: StripStatistics, costs: Costs) -> bool:
    try:
        _refuse_excess(blocks, statistics, costs)
    except MatrixSizeError:
        return False
    return True


def _refuse_excess(blocks: Sequence[PlannedBlock], statistics: StripStatistics, costs: Costs) -> None:
    """Raise unless all blocks in their formats, with x and y, fit in the machine's memory at once."""
    size = 0
    for block in blocks:
        candidate, rows = block.candidate, rows_of(statistics, block)
        size += int(costs.target.format_bytes(candidate.format, rows, candidate.parameters)[0])
    refuse_beyond_memory("the plan", size, statistics.matrix, costs.target, costs.machine)


def _sum(ends: list[float | None]) -> float | None:
    return None if None in ends else math.fsum(end for end in ends if end is not None)


def break_even(extra_s: float, saved_s: float) -> int | None:
    """Return the number of products after which `extra_s` of conversion is saved; None if it never is."""
    if extra_s <= 0:
        return 0
    return math.ceil(extra_s / saved_s) if saved_s > 0 else None
