"""sparsecast cost APPLICATION MATRIX."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.output import Output
from sparsecast.cli.reading import read_matrix, shown_parts
from sparsecast.operators.applications.defaults import DAMPING, EPSILON, TOLERANCE
from sparsecast.system.texts import counted


@command("cost", Panel.FORECASTS, figure=True, csv=True)
def cost(
    application: Annotated[
        str, typer.Argument(metavar="APPLICATION", help="pagerank, cg, or one of a plug-in.")
    ],
    matrix: options.MatrixArgument,
    place: options.PlaceGroup,
    trust: options.TrustGroup,
    iterations: Annotated[
        int | None, typer.Option(min=1, help="Number of iterations, if it is known.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Run the application here, and time its loops.")
    ] = False,
    damping: Annotated[
        float | None, typer.Option(help="Damping factor of PageRank.", show_default=f"{DAMPING}")
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(help="Change of the ranks at which PageRank stops.", show_default=f"{EPSILON}"),
    ] = None,
    tolerance: Annotated[
        float | None, typer.Option(help="Relative residual at which cg stops.", show_default=f"{TOLERANCE}")
    ] = None,
    preconditioner: Annotated[
        str | None, typer.Option(metavar="jacobi", help="Preconditioner of cg; none by default.")
    ] = None,
    forecast_only: options.ForecastOnlyOption = False,
    network: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE", help="Forecast the product by a trained network; for time, energy or both."
        ),
    ] = None,
) -> Output:
    """Forecast time and energy of a whole run before it starts, loop by loop."""
    from sparsecast import api
    from sparsecast.reports.charts.shares import shares
    from sparsecast.reports.progress import counted_bar
    from sparsecast.results.application import DOCUMENTS, CostReport

    named: dict[str, Any] = {"damping": damping, "epsilon": epsilon, "tolerance": tolerance}
    named["preconditioner"] = preconditioner
    settings = {name: value for name, value in named.items() if value is not None}
    problem = read_matrix(matrix)
    question = api.application_question(application, problem, **settings)
    networks = [Path(file) for file in network or ()]
    threads = api.threads_of_run(place.threads, networks)
    how = {"threads": threads, "device": place.device, **trust.session_options}
    session = api.session(place.profile, **how)
    with shown_parts():
        cost = api.application_cost(
            session, question, iterations=iterations, networks=networks, measures=not forecast_only
        )
    run = None
    if check:
        with counted_bar(options.screen(), application, cost.iterations.high) as advance:
            run = api.run_application(
                question, cost.plan, most=iterations, on_iteration=lambda number, residual: advance()
            )
    report = CostReport(problem.name, cost, run)
    title = f"{application} on {problem.name}: {counted(cost.iterations.expected, 'iteration')} expected"
    title += "" if run is None else f", {run.iterations:,} done"
    notes = (*(f"{problem.name} {note}." for note in problem.notes), *question.application.notes)
    shown = [*report.tables(), *report.sentences()]
    return Output(
        DOCUMENTS["cost"], report, shown, (*notes, *cost.plan.notes), lambda: (shares(cost, run), title)
    )
