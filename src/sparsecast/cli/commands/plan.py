"""sparsecast plan MATRIX."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.output import Output
from sparsecast.cli.reading import profiles_for, read_matrix, transposed

if TYPE_CHECKING:
    from pathlib import Path


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
) -> Output:
    """Find the best formats of row blocks for a number of products, conversion included."""
    from sparsecast import api
    from sparsecast.reports.charts import plans
    from sparsecast.reports.charts.chart import render
    from sparsecast.results.columns import matrix_document
    from sparsecast.results.plan import DOCUMENTS
    from sparsecast.system.texts import counted

    api.refuse_probe(probe, not no_drift_correction, device)
    if as_printed:
        api.printed_planner(model)  # a model without one is refused before a calibration
    built: list[str] = []
    problem = read_matrix(matrix)
    problem = transposed(problem, built) if transpose else problem
    api.rounding(problem, values, dtype, device)
    profiles = profiles_for(problem, profile, threads, dtype, device)
    question: dict[str, Any] = {"iterations": iterations, "threads": threads, "dtype": dtype, "model": model}
    question |= {"anyway": anyway}
    placements = None
    if device is not None and "," in device and not as_printed and objective == "time" and vectors == 1:
        placements = api.place(problem, device, profiles, **question)
        chosen, machine = placements.best.plan, placements.best.profile
        notes = dict.fromkeys(note for placement in placements.placements for note in placement.plan.notes)
    else:
        question |= {"objective": objective, "power_model": options.power_file(power_model)}
        question |= {"energy_model": energy_model, "drift_correction": not no_drift_correction}
        question |= {"probe_s": probe, "as_printed": as_printed, "measure": not forecast_only}
        question |= {"vectors": vectors, "values": values}
        chosen, machine = api.plan(problem, *profiles, **question, device=device), profiles[0].name
        notes = dict.fromkeys(chosen.notes)
    checked = api.check(problem, chosen, device=device) if check else None
    products = f"{counted(iterations, 'product')}: {problem.name}"
    shown: list[Any] = []
    if placements is not None:
        shown += [placements.table(f"Where to do {products}"), *placements.sentences()]
    shown += [chosen.table(f"Plan for {products}"), *chosen.sentences(machine)]
    if checked is not None:
        shown += [checked.table(chosen), checked.sentence(chosen)]

    def draw(path: Path) -> None:
        chart = plans.plan(problem.matrix, chosen, checked, placements)
        render(chart, f"Plan for {products}, on {machine}", path)

    item = {"matrix": matrix_document(problem.name, problem.sampled_structure), "plan": chosen}
    item |= {"check": checked, "placements": placements}
    columns = DOCUMENTS["plan" if placements is None else "plan --device DEVICE,DEVICE"]
    return Output(columns, item, shown, (*built, *notes), draw)
