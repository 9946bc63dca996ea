"""sparsecast plan MATRIX."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.output import Output
from sparsecast.cli.reading import profiles_for, read_matrix, shown_parts, transposed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from sparsecast.results.next_steps import NextStep
    from sparsecast.results.placement import Placements
    from sparsecast.results.plan import Plan


@command("plan", Panel.FORECASTS, figure=True, csv=True)
def plan(
    matrix: options.MatrixArgument,
    iterations: Annotated[int, typer.Option(min=1, help="Products that will be done.")] = 1000,
    check: Annotated[bool, typer.Option("--check", help="Build the plan and measure it here.")] = False,
    profile: options.ProfileOption = None,
    threads: options.AnyThreadsOption = None,
    dtype: options.DtypeOption = None,
    device: options.DevicesOption = None,
    vectors: options.VectorsOption = 1,
    values: options.ValuesOption = None,
    library: options.LibraryOption = None,
    transpose: options.TransposeOption = False,
    model: options.ModelOption = None,
    no_drift_correction: options.NoDriftOption = False,
    anyway: options.AnywayOption = False,
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
    power_model: options.PowerModelOption = None,
    energy_model: options.EnergyModelOption = None,
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
    from sparsecast.errors import InputError
    from sparsecast.reports.charts import intervals, plans
    from sparsecast.reports.charts.chart import render
    from sparsecast.results.columns import matrix_document
    from sparsecast.results.placement import DOCUMENTS as PLACED
    from sparsecast.results.plan import DOCUMENTS
    from sparsecast.system.texts import counted

    api.refuse_probe(probe, not no_drift_correction, device)
    if as_printed:
        api.printed_planner(model)  # a model without one is refused before a calibration
    built: list[str] = []
    problem = read_matrix(matrix)
    problem = transposed(problem, built) if transpose else problem
    api.rounding(problem, values, dtype, device)
    question: dict[str, Any] = {"iterations": iterations, "threads": threads, "dtype": dtype, "model": model}
    question |= {"anyway": anyway, "library": library, "drift_correction": not no_drift_correction}
    placements: Placements | None = None
    if where is not None:
        alone: dict[str, Any] = {"--device": device, "--profile": profile, "--probe": probe}
        alone |= {"--as-printed": as_printed, "--values": values, "--vectors": vectors > 1}
        alone |= {"--objective": objective != "time", "--power-model": power_model}
        alone |= {"--energy-model": energy_model}
        if given := next((name for name, value in alone.items() if value), None):
            raise InputError(f"{given} with --where {where}: expected one of both; leave one out")
        names = [api.PROCESSOR] if where == api.ALL else api.named_places(where)
        device = ",".join(filter(api.is_device, names))
        if device:  # calibrates
            profiles_for(problem, None, threads, dtype, device)
        with shown_parts():
            placements = api.where(problem, where, prices=api.prices_of(price or ()), **question)
    elif price:
        raise InputError(f"price '{price[0]}' of one place: expected several; name them by --where")
    else:
        profiles = profiles_for(problem, profile, threads, dtype, device)
        if device is not None and "," in device and not as_printed and objective == "time" and vectors == 1:
            placements = api.where(problem, api.named_places(device, profiles), **question)
    chosen: Plan | None
    if placements is not None:
        planned = placements.planned
        chosen, machine = (planned.plan, planned.machine) if planned else (None, "")
    else:
        question |= {"objective": objective, "power_model": options.power_file(power_model)}
        question |= {"energy_model": energy_model, "probe_s": probe, "as_printed": as_printed}
        question |= {"measure": not forecast_only, "vectors": vectors, "values": values}
        chosen, machine = api.plan(problem, *profiles, **question, device=device), profiles[0].name
    if check and chosen is None:
        raise InputError(f"--check with --where {where}: expected a place with a plan, such as cpu; add one")
    checked = api.check(problem, chosen, device=device or None) if check and chosen else None
    products = f"{counted(iterations, 'product')}: {problem.name}"
    shown: list[Any] = []
    if placements is not None:
        shown += [placements.table(f"Where to do {products}"), *placements.sentences()]
    if chosen is not None:
        shown += [chosen.table(f"Plan for {products}"), *chosen.sentences(machine)]
    steps: Sequence[NextStep] = ()
    if chosen is not None and placements is None and vectors == 1 and not as_printed:
        drifts = not no_drift_correction and chosen.trials is None
        steps = api.forecast_next_steps(problem, profiles[0], chosen, model=model, drift_correction=drifts)
    shown += [step.sentence() for step in steps]
    if chosen is not None and checked is not None:
        shown += [checked.table(chosen), checked.sentence(chosen)]

    def draw(path: Path) -> None:
        if chosen is not None:
            chart = plans.plan(problem.matrix, chosen, checked, placements)
            render(chart, f"Plan for {products}, on {machine}", path)
        elif placements is not None:
            rows = {problem.name: intervals.machine_rows(placements.placements)}
            render(intervals.times(rows, products), "Where to do the products", path)

    identity = matrix_document(problem.name, problem.sampled_structure)
    item = {
        "matrix": identity,
        "plan": chosen,
        "check": checked,
        "placements": placements,
        "next_steps": steps,
    }
    columns = DOCUMENTS["plan"] if placements is None else PLACED["plan --where PLACE,PLACE"]
    notes = () if chosen is None or placements else dict.fromkeys(chosen.notes)
    return Output(columns, item, shown, (*built, *notes), draw)
