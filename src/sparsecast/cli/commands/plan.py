"""sparsecast plan MATRIX."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.output import Drawn, Output
from sparsecast.cli.reading import profile_for, read_matrix, shown_parts, transposed
from sparsecast.errors import InputError

if TYPE_CHECKING:
    from sparsecast.api import Problem
    from sparsecast.results.next_steps import NextStep
    from sparsecast.results.placement import PlanAnswer


@command("plan", Panel.FORECASTS, figure=True, csv=True)
def plan(
    matrix: options.MatrixArgument,
    question: options.Question,
    iterations: Annotated[int, typer.Option(min=1, help="Products that will be done.")] = 1000,
    check: Annotated[bool, typer.Option("--check", help="Build the plan and measure it here.")] = False,
    forecast_only: options.ForecastOnlyOption = False,
    probe: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Try what may be fastest for so long, whatever that gains.",
        ),
    ] = None,
    as_printed: Annotated[
        bool,
        typer.Option("--as-printed", help="As the paper of the model prints it, such as --model guo."),
    ] = False,
    objective: options.ObjectiveOption = "time",
    where: Annotated[
        str | None,
        typer.Option(
            metavar="all|PLACE[,PLACE]",
            help="Compare places: devices of this machine and profiles; all takes those at hand.",
        ),
    ] = None,
    price: options.PriceOption = None,
) -> Output:
    """Find the best formats of row blocks for a number of products, conversion included."""
    from sparsecast import api
    from sparsecast.results.placement import DOCUMENTS

    api.refuse_probe(probe, not question.no_drift_correction)
    if as_printed:
        api.printed_planner(question.model)  # a model without one is refused before a calibration
    built: list[str] = []
    problem = read_matrix(matrix)
    problem = transposed(problem, built) if question.transpose else problem
    api.rounding(problem, question.values, question.dtype, question.device)
    if where is None:
        if price:
            raise InputError(f"price '{price[0]}' of one place: expected several; name them by --where")
        how: dict[str, Any] = {"measure": not forecast_only, "probe_s": probe, "as_printed": as_printed}
        answer = _alone(problem, question, iterations, how | {"objective": objective})
    else:
        of_one: dict[str, object] = {"--probe": probe, "--as-printed": "" if as_printed else None}
        of_one |= {"--objective": None if objective == "time" else objective}
        answer = _placed(problem, question, iterations, where, of_one, api.prices_of(price or ()))
    if check and answer.plan is None:
        raise InputError(f"--check with --where {where}: expected a place with a plan, such as cpu; add one")
    if check and answer.plan is not None:
        answer = replace(answer, check=api.check(problem, answer.plan, device=question.device))

    def chart() -> Drawn:
        from sparsecast.reports.charts import intervals, plans

        if answer.plan is not None:
            drawn = plans.plan(problem.matrix, answer.plan, answer.check, answer.placements)
            return drawn, f"Plan for {answer.products}, on {answer.machine}"
        assert answer.placements is not None, "an answer has a plan, or places"
        rows = {problem.name: intervals.machine_rows(answer.placements.placements)}
        return intervals.times(rows, answer.products), "Where to do the products"

    columns = DOCUMENTS["plan" if answer.placements is None else "plan --where PLACE,PLACE"]
    return Output(columns, answer, answer.shown(), (*built, *answer.notes), chart)


def _alone(problem: Problem, question: options.Question, iterations: int, how: dict[str, Any]) -> PlanAnswer:
    """Plan for one machine, which is calibrated first where it must be."""
    from sparsecast import api
    from sparsecast.results.placement import PlanAnswer

    profile = profile_for(problem, question.profile, **question.setting)
    plan = api.plan(problem, profile, iterations=iterations, **question.asked, **how)
    steps: tuple[NextStep, ...] = ()
    if question.vectors == 1 and not plan.as_printed:
        drifts = not question.no_drift_correction and plan.trials is None
        steps = api.forecast_next_steps(problem, profile, plan, model=question.model, drift_correction=drifts)
    return PlanAnswer(problem, iterations, plan, profile.name, next_steps=steps)


def _placed(
    problem: Problem,
    question: options.Question,
    iterations: int,
    where: str,
    of_one: dict[str, object],
    prices: dict[str, float],
) -> PlanAnswer:
    """Compare places, of which devices are calibrated first; refuse what is asked of one place alone."""
    from sparsecast import api
    from sparsecast.results.placement import PlanAnswer

    of_one |= {"--device": question.device, "--values": question.values}
    of_one |= {"--vectors": question.vectors if question.vectors > 1 else None}
    of_one |= {"--power-model": question.power_model, "--energy-model": question.energy_model}
    options.refuse_given(of_one, f"with --where {where}: expected one of both; leave one out")
    names = api.named_places(where)
    names += [] if question.profile is None else [question.profile]
    for device in filter(api.is_device, [api.PROCESSOR, *names] if api.ALL in names else names):
        profile_for(problem, None, api.threads_of(device, question.threads), question.dtype, device)
    asked, shared = question.asked, ("threads", "dtype", "library", "model", "drift_correction", "anyway")
    how = {name: asked[name] for name in shared}
    with shown_parts():
        placements = api.where(problem, names, iterations=iterations, prices=prices, **how)
    plan, machine = (it.plan, it.machine) if (it := placements.planned) else (None, "")
    return PlanAnswer(problem, iterations, plan, machine, placements)
