"""sparsecast cost APPLICATION MATRIX."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from sparsecast import api
from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.options import argument, flag, option
from sparsecast.cli.output import Output
from sparsecast.cli.reading import counted_bar, read_matrix, shown_parts
from sparsecast.operators.applications.defaults import DAMPING, EPSILON, TOLERANCE
from sparsecast.system.texts import counted


@command("cost", Panel.FORECASTS, figure=True, csv=True)
def cost(
    application: Annotated[str, argument("APPLICATION", "pagerank, cg, or one of a plug-in.")],
    matrix: options.MatrixArgument,
    place: options.PlaceGroup,
    trust: options.TrustGroup,
    iterations: Annotated[int | None, option(None, "Number of iterations, if it is known.", min=1)] = None,
    check: Annotated[bool, flag("--check", "Run the application here, and time its loops.")] = False,
    damping: Annotated[
        float | None, option(None, "Damping factor of PageRank.", show_default=f"{DAMPING}")
    ] = None,
    epsilon: Annotated[
        float | None,
        option(None, "Change of the ranks at which PageRank stops.", show_default=f"{EPSILON}"),
    ] = None,
    tolerance: Annotated[
        float | None, option(None, "Relative residual at which cg stops.", show_default=f"{TOLERANCE}")
    ] = None,
    preconditioner: Annotated[str | None, option("jacobi", "Preconditioner of cg; none by default.")] = None,
    forecast_only: options.ForecastOnlyOption = False,
    network: Annotated[
        list[str] | None,
        option("FILE", "Forecast the product by a trained network; for time, energy or both."),
    ] = None,
) -> Output:
    """Forecast time and energy of a whole run before it starts, loop by loop."""
    from sparsecast.reports.charts.shares import shares
    from sparsecast.results.application import DOCUMENTS, CostReport

    named = {"damping": damping, "epsilon": epsilon, "tolerance": tolerance, "preconditioner": preconditioner}
    settings = {name: value for name, value in named.items() if value is not None}
    problem = read_matrix(matrix)
    question = api.application_question(application, problem, **settings)
    networks = [Path(file) for file in network or ()]
    session = api.session(place.profile, threads=place.threads, device=place.device, **trust.session_options)
    with shown_parts():
        cost = api.application_cost(
            session, question, iterations=iterations, networks=networks, measures=not forecast_only
        )
    run = None
    if check:
        with counted_bar(application, cost.iterations.high) as advance:
            run = api.run_application(
                question, cost.plan, most=iterations, on_iteration=lambda number, residual: advance()
            )
    report = CostReport(problem.name, cost, run)
    title = f"{application} on {problem.name}: {counted(cost.iterations.expected, 'iteration')} expected"
    title += "" if run is None else f", {run.iterations:,} done"
    notes = [*(f"{problem.name} {note}." for note in problem.notes), *question.application.notes]
    shown = [*report.tables(), *report.sentences()]
    return Output(
        DOCUMENTS["cost"], report, shown, [*notes, *cost.plan.notes], lambda: (shares(cost, run), title)
    )
