"""sparsecast plan MATRIX."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.profile_choice import profiles_for
from sparsecast.cli.reading import read_matrix

if TYPE_CHECKING:
    from rich.table import Table


@command("plan", Panel.FORECASTS)
def plan(
    matrix: options.MatrixArgument,
    iterations: Annotated[int, typer.Option(min=1, help="Products that will be done.")] = 1000,
    check: Annotated[bool, typer.Option("--check", help="Build the plan and measure it here.")] = False,
    profile: options.ProfileOption = None,
    threads: options.ThreadsOption = None,
    dtype: options.DtypeOption = None,
    device: options.DevicesOption = None,
    model: options.ModelOption = None,
    as_met: options.AsMetOption = False,
    probe: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Measure CSR here, correct the others by it, and measure what may be fastest, for so long.",
        ),
    ] = None,
    as_printed: Annotated[
        bool,
        typer.Option(
            "--as-printed", help="As Guo et al. (2014): the fastest product, no conversion counted."
        ),
    ] = False,
    objective: options.ObjectiveOption = "time",
    power_model: options.PowerModelOption = None,
    figure: options.FigureOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Find the best way of doing a number of products, conversion paid: a format for each row block."""
    from sparsecast import api
    from sparsecast.reports import documents, tables
    from sparsecast.reports.charts import plans
    from sparsecast.reports.charts.chart import render

    options.refuse_figure(figure)
    api.refuse_probe(probe, as_met, device)
    found = read_matrix(matrix)
    profiles = profiles_for(found, profile, threads, dtype, device)
    asked: dict[str, Any] = {"iterations": iterations, "threads": threads, "dtype": dtype, "model": model}
    placements = None
    if device is not None and "," in device and not as_printed and objective == "time":
        placements = api.place(found, device, profiles, **asked)
        made, on = placements.best.plan, placements.best.profile
        notes = tuple(dict.fromkeys(note for each in placements.placements for note in each.plan.notes))
    else:
        asked |= {"objective": objective, "power_model": options.power_file(power_model)}
        made = api.plan(
            found, *profiles, **asked, device=device, as_met=as_met, probe_s=probe, as_printed=as_printed
        )
        on, notes = profiles[0].name, made.notes
    options.warn(notes)
    checked = api.check(found, made, device=device) if check else None
    document = {
        "matrix": documents.matrix(found.sampled_structure, found.name),
        "plan": documents.plan(made, checked),
        "transferred_from": documents.transferred_from(made.transferred_from),
    }
    products = f"{iterations:,} products: {found.name}"
    if figure is not None:
        chart = plans.plan(found.matrix, made, checked, placements)
        render(chart, f"Plan for {products}, on {on}", figure)
    shown: list[Table | str] = []
    if placements is not None:
        document |= documents.placements(placements)
        shown.append(tables.placements(f"Where to do {products}", placements))
        shown += tables.placement_sentences(placements)
    shown += [tables.plan(f"Plan for {products}", made), *tables.plan_sentences(made, on)]
    if checked is not None:
        shown.append(tables.plan_check(made, checked))
    options.show(as_json, document, *shown)
