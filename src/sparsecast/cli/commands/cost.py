"""sparsecast cost APPLICATION MATRIX."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.profile_choice import profile_for
from sparsecast.cli.reading import read_matrix, shown_parts
from sparsecast.operators.applications.defaults import DAMPING, EPSILON, TOLERANCE


@command("cost", Panel.FORECASTS)
def cost(
    application: Annotated[
        str, typer.Argument(metavar="APPLICATION", help="pagerank, cg, or an installed one.")
    ],
    matrix: options.MatrixArgument,
    iterations: Annotated[
        int | None, typer.Option(min=1, help="How many there will be, where that is known.")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Run it here, and time its loops.")] = False,
    damping: Annotated[float | None, typer.Option(help="Of PageRank.", show_default=f"{DAMPING}")] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(help="Change of the ranks at which PageRank ends.", show_default=f"{EPSILON}"),
    ] = None,
    tolerance: Annotated[
        float | None, typer.Option(help="Relative residual at which cg ends.", show_default=f"{TOLERANCE}")
    ] = None,
    preconditioner: Annotated[
        str | None, typer.Option(metavar="jacobi", help="Of cg: none by default.")
    ] = None,
    profile: options.ProfileOption = None,
    threads: options.ThreadsOption = None,
    model: options.ModelOption = None,
    figure: options.FigureOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Forecast time and energy of a whole run before it starts, loop by loop."""
    from sparsecast import api
    from sparsecast.reports import application_reports
    from sparsecast.reports.charts.chart import render
    from sparsecast.reports.charts.shares import shares
    from sparsecast.reports.progress import counted_bar

    options.refuse_figure(figure)
    named = {
        "damping": damping,
        "epsilon": epsilon,
        "tolerance": tolerance,
        "preconditioner": preconditioner,
    }
    settings = {name: value for name, value in named.items() if value is not None}
    found = read_matrix(matrix)
    question = api.application_question(application, found, **settings)
    chosen = profile_for(question.problem, profile, threads, None, None)
    asked: dict[str, Any] = {"threads": threads, "model": model}
    with shown_parts():
        cost = api.application_cost(question, chosen, iterations=iterations, **asked)
    options.warn(
        (*(f"{found.name} {note}." for note in found.notes), *question.application.notes, *cost.plan.notes)
    )
    run = None
    if check:
        with counted_bar(options.screen(), application, cost.iterations.high) as advance:
            run = api.run_application(
                question, cost.plan, most=iterations, on_iteration=lambda number, residual: advance()
            )
    if figure is not None:
        title = f"{application} on {found.name}: {cost.iterations.expected:,} iterations expected"
        counted = "" if run is None else f", {run.iterations:,} done"
        render(shares(cost, run), title + counted, figure)
    document = application_reports.document(found.name, cost, run)
    table = application_reports.table(f"{application} on {found.name}", cost, run)
    options.show(as_json, document, table, *application_reports.sentences(cost, run))
