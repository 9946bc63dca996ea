"""sparsecast compare MATRIX... --machines A,B,C."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.output import Output
from sparsecast.cli.reading import read_question
from sparsecast.errors import InputError
from sparsecast.system.texts import counted


@command("compare", Panel.FORECASTS, figure=True, csv=True)
def compare(
    matrices: Annotated[
        list[str], typer.Argument(metavar="MATRIX...", help="As of predict, but for tables.")
    ],
    machines: Annotated[
        str | None,
        typer.Option(metavar="NAME|PATH[,NAME|PATH]", help="Profiles to compare; all by default."),
    ] = None,
    products: Annotated[int, typer.Option(min=1, help="Products that will be done.")] = 1000,
    price: options.PriceOption = None,
    library: options.LibraryOption = None,
    model: options.ModelOption = None,
    anyway: options.AnywayOption = False,
    page: Annotated[
        Path | None,
        typer.Option(metavar="FILE.html", help="Write all of it as one page, to look at and send."),
    ] = None,
    force: options.ForceOption = False,
) -> Output:
    """Forecast products on several machines: time, energy and price side by side."""
    from sparsecast import api
    from sparsecast.reports.charts import intervals
    from sparsecast.reports.charts.chart import render
    from sparsecast.reports.pages import rendering
    from sparsecast.reports.pages.comparison_page import MachineReport, comparison_page
    from sparsecast.reports.progress import counted_bar
    from sparsecast.results.placement import DOCUMENTS, Comparison

    if page is not None:
        rendering.refuse_undrawable()
        options.refuse_unwritable(page)
        options.refuse_taken(page, force)
    profiles, damaged = api.profiles_to_compare(api.ALL if machines is None else machines)
    prices = api.prices_of(price or ())
    read = {text: read_question(text) for text in matrices}
    names = api.distinct_names({text: name for text, (name, _) in read.items()})
    questions = {names[text]: question for text, (_, question) in read.items()}
    with counted_bar(options.screen(), "forecasting", len(questions) * len(profiles)) as advance:
        how: dict[str, Any] = {"products": products, "prices": prices, "model": model, "anyway": anyway}
        how |= {"library": library}
        answers = api.compare(questions, profiles, damaged, **how, on_place=advance)
        comparison = Comparison(dict(zip(questions, answers, strict=True)))
    if not comparison.rows:
        raise InputError(next(why for machine in comparison.refused.values() for why in machine.values()))
    if page is not None:
        held = {name: api.origin(profile) or api.contents(profile) for name, profile in profiles.items()}
        report = MachineReport(matrices, comparison, held, prices, products)
        rendering.write(comparison_page(report), page)
    title = f"Forecast of {counted(products, 'product')}, the best machine first"

    def draw(path: Path) -> None:
        rows_of = {
            name: intervals.machine_rows(answer.placements) for name, answer in comparison.answers.items()
        }
        render(intervals.times(rows_of, counted(products, "product")), "Forecast on each machine", path)

    return Output(DOCUMENTS["compare"], comparison, [comparison.table(title)], draw=draw)
