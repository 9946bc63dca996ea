"""What plans choose on this machine, trials included."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

import sparsecast as sc
from experiment import Rows, Threads, experiment, mean_and_worst, named, timed
from sparsecast.devices import DEVICES
from sparsecast.devices.binding import as_compiled
from sparsecast.devices.product_timer import ProductTimer
from sparsecast.errors import InputError
from sparsecast.matrices.problem import Problem
from sparsecast.measuring.timing import Effort
from sparsecast.operators.block_operator import BlockOperator, RowProduct
from sparsecast.planning.trials import LOADER
from sparsecast.records import Candidate
from sparsecast.results.columns import stored_as
from sparsecast.results.plan import Plan

#: Products of the plan for few products, whose trials count in the whole.
FEW = 1000


@experiment("Forecasts")
def choice(
    matrices: Annotated[list[str], typer.Argument(metavar="FOLDER|MATRIX...", help="Or specifications.")],
    threads: Threads = 1,
    products: Annotated[int, typer.Option(min=1, help="Of the plan beside the best candidate.")] = 10_000,
    least_entries: Annotated[int, typer.Option(help="Leave smaller matrices out.")] = 0,
    samples: Annotated[int, typer.Option(min=1, help="Of each product.")] = 40,
) -> Rows:
    """Plan for some products and for a thousand, and time both in turn with every candidate.

    "over best" is the planned operator's time over that of the best candidate's operator. "whole" is what a
    thousand products take with their trials and compile, over a thousand with a compile in CSR. Both plans
    come before any candidate is built, so that conversions meet fresh memory. Kernels are loaded before, and
    the forecasts themselves do not count: "to plan" has them.
    """
    tiny = Problem.named("gallery:poisson3d?n=20")  # what a first plan of a process loads
    sc.compile(tiny, sc.plan(tiny, products=10**6, threads=threads))
    ratios: dict[str, list[float]] = {}
    for problem in named(matrices):
        if problem.matrix.nnz < least_entries:
            continue
        candidates = sc.session(threads=threads).choice(problem).candidates
        for candidate in candidates:
            LOADER.load(DEVICES.get(candidate.device), as_compiled(candidate, problem.structure))
        operators: dict[Any, BlockOperator] = {}
        plans, before_s, to_plan_s = {}, {}, {}
        for count in (FEW, products):
            own = Problem.of(problem.matrix, problem.name)
            plan, to_plan_s[count] = timed(lambda own=own, n=count: sc.plan(own, products=n, threads=threads))
            operators[count], build_s = timed(lambda own=own, plan=plan: sc.compile(own, plan))
            plans[count], before_s[count] = plan, build_s + (plan.trials.used_s if plan.trials else 0.0)
        csr_plan = plans[FEW].csr_alone(plans[FEW].baseline.time_s)
        _, csr_build_s = timed(lambda problem=problem, plan=csr_plan: sc.compile(problem, plan))
        seconds, noise = _seconds(problem, candidates, operators, samples)
        csr_s = seconds["CSR"]
        best = min(seconds.keys() - plans.keys(), key=seconds.__getitem__)
        over = {
            "over best": seconds[products] / seconds[best],
            "CSR over best": csr_s / seconds[best],
            "whole": (before_s[FEW] + FEW * seconds[FEW]) / (csr_build_s + FEW * csr_s),
        }
        for name, ratio in over.items():
            ratios.setdefault(name, []).append(ratio)
        yield {
            "matrix": problem.name,
            "entries": problem.matrix.nnz,
            "CSR_s": csr_s,
            "best": best,
            f"{products:,}": _chosen(plans[products]),
            f"{FEW:,}": _chosen(plans[FEW]),
            **over,
            "trials_s": before_s[FEW],
            "to plan_s": to_plan_s[FEW],
            "noise": noise,
        }
    yield from mean_and_worst(ratios)


def _seconds(
    problem: Problem, candidates: Sequence[Candidate], operators: dict[Any, BlockOperator], samples: int
) -> tuple[dict[Any, float], float]:
    """Return the seconds of the operators and of every candidate that can be built, and the largest noise."""
    timer = ProductTimer(problem.matrix, candidates[0], DEVICES.get(candidates[0].device))
    calls, shape = {}, timer.A.shape
    for candidate in candidates:
        try:
            rows = RowProduct(0, shape[0], timer.build(candidate).bound.product)
            operators[stored_as(candidate)] = BlockOperator(shape, timer.A.dtype, [rows])
        except InputError as error:
            print(f"left out: {error}", file=sys.stderr)
    for name, operator in operators.items():
        timer.check(operator.matvec, str(name))
        calls[name] = lambda operator=operator: operator.matvec(timer.x, timer.out)
    timings = timer.time(calls, Effort(samples=samples, most_s=0.2, wait_s=0.1))
    noise = max(timing.noise or 0.0 for timing in timings.values())
    return {name: timing.time_s for name, timing in timings.items()}, noise


def _chosen(plan: Plan) -> str:
    """Return the ways of a plan's blocks, and how many were tried."""
    ways = "+".join(dict.fromkeys(stored_as(block.candidate) for block in plan.blocks))
    return ways + (f" of {1 + len(plan.trials.tried)}" if plan.trials else "")
