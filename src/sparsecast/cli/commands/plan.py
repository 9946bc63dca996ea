"""sparsecast plan MATRIX."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from sparsecast import api
from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.options import flag, option
from sparsecast.cli.output import Drawn, Output
from sparsecast.cli.reading import read_matrix, session_for, shown_parts, transposed
from sparsecast.errors import InputError

if TYPE_CHECKING:
    from sparsecast.results.placement import PlanAnswer


@command("plan", Panel.FORECASTS, figure=True, csv=True)
def plan(
    matrix: options.MatrixArgument,
    setting: options.SettingGroup,
    trust: options.TrustGroup,
    products: options.ProductsOption = 1000,
    check: Annotated[bool, flag("--check", "Build the plan and measure it here.")] = False,
    forecast_only: options.ForecastOnlyOption = False,
    probe: Annotated[
        float | None,
        option("SECONDS", "Measure candidates that may be the fastest for this time, whatever the gain."),
    ] = None,
    as_printed: Annotated[
        bool, flag("--as-printed", "Plan as printed in the paper of the model, such as --model guo.")
    ] = False,
    objective: options.ObjectiveOption = "time",
    where: Annotated[
        str | None,
        option(
            "all|PLACE[,PLACE]",
            "Compare devices of this machine and profiles; all compares those at hand.",
        ),
    ] = None,
    price: options.PriceOption = None,
) -> Output:
    """Find the best format of each row block for a number of products, conversion included."""
    from sparsecast.results.placement import DOCUMENTS, PlanAnswer

    if probe is not None and forecast_only:
        raise InputError(f"--probe {probe:g} with --forecast-only: expected one of them; leave one out")
    built: list[str] = []
    problem = read_matrix(matrix)
    problem = transposed(problem, built) if setting.transpose else problem
    if where is None:
        if price:
            raise InputError(f"price '{price[0]}' of one place: expected several; name them by --where")
        session = session_for(setting, trust, as_printed=as_printed)
        probe_s = 0 if forecast_only else probe
        with shown_parts():
            plan = session.plan(problem, products=products, objective=objective, probe_s=probe_s)
        profile, _ = session.question(problem)
        answer = PlanAnswer(problem, products, plan, profile.name)
        if setting.vectors == 1 and not plan.as_printed:
            drifts = session.trust.drift_correction and plan.trials is None
            held = session.changed(drift_correction=drifts)
            steps = api.forecast_next_steps(problem, held, plan)
            answer = replace(answer, next_steps=steps)
    else:
        of_one: dict[str, object] = {"--probe": probe, "--as-printed": "" if as_printed else None}
        of_one |= {"--objective": None if objective == "time" else objective}
        of_one |= {name: setting.named[name] for name in ("--device", "--values", "--vectors")}
        of_one |= {"--power-model": trust.power_model, "--energy-model": trust.energy_model}
        options.refuse_given(of_one, f"with --where {where}: expected one of both; leave one out")
        answer = _placed(problem, setting, trust, products, where, api.prices_of(price or ()))
    if check:
        if answer.plan is None:
            what = f"--check with --where {where}"
            raise InputError(f"{what}: expected a place with a plan, such as cpu; add one")
        answer = replace(answer, check=api.check(problem, answer.plan, device=setting.device))

    def chart() -> Drawn:
        from sparsecast.reports.charts import intervals, plans

        if answer.plan is not None:
            drawn = plans.plan(problem.matrix, answer.plan, answer.check, answer.placements)
            return drawn, f"Plan for {answer.title}, on {answer.machine}"
        assert answer.placements is not None, "an answer has a plan, or places"
        rows = {problem.name: intervals.machine_rows(answer.placements.placements)}
        return intervals.times(rows, answer.title), "Where to do the products"

    columns = DOCUMENTS["plan" if answer.placements is None else "plan --where PLACE,PLACE"]
    return Output(columns, answer, answer.shown(), [*built, *answer.notes], chart)


def _placed(
    problem: api.Problem,
    setting: options.SettingGroup,
    trust: options.TrustGroup,
    products: int,
    where: str,
    prices: dict[str, float],
) -> PlanAnswer:
    from sparsecast.results.placement import PlanAnswer

    names = api.named_places(where) + ([] if setting.profile is None else [setting.profile])
    shared = ("threads", "dtype", "library", "model", "drift_correction", "anyway")
    given = setting.session_options | trust.session_options
    values: Any = {name: given[name] for name in shared}
    with shown_parts():
        placements = api.where(problem, names, products=products, prices=prices, **values)
    plan, machine = (it.plan, it.machine) if (it := placements.planned) else (None, "")
    return PlanAnswer(problem, products, plan, machine, placements)
