"""sparsecast compare MATRIX... --machines A,B,C."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.reading import read_question
from sparsecast.errors import InputError


@command("compare", Panel.FORECASTS)
def compare(
    matrices: Annotated[
        list[str], typer.Argument(metavar="MATRIX...", help="As of predict, but for tables.")
    ],
    machines: Annotated[
        str | None,
        typer.Option(metavar="NAME|PATH[,NAME|PATH]", help="Profiles to compare; all by default."),
    ] = None,
    products: Annotated[int, typer.Option(min=1, help="Products that will be done.")] = 1000,
    price: Annotated[
        list[str] | None,
        typer.Option(metavar="MACHINE=NUMBER/h", help="Of an hour, in any currency; once for each machine."),
    ] = None,
    model: options.ModelOption = None,
    figure: options.FigureOption = None,
    page: Annotated[
        Path | None,
        typer.Option(metavar="FILE.html", help="Write all of it as one page, to look at and send."),
    ] = None,
    force: options.ForceOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Forecast products on several machines: time, energy and price side by side."""
    from sparsecast import api
    from sparsecast.planning.machine_comparison import prices_of
    from sparsecast.reports import comparison_reports
    from sparsecast.reports.pages import rendering
    from sparsecast.reports.pages.comparison_page import MachineReport, comparison_page
    from sparsecast.reports.progress import counted_bar

    options.refuse_figure(figure)
    if page is not None:
        rendering.refuse_undrawable()
        options.refuse_unwritable(page)
        options.refuse_taken(page, force)
    profiles = api.profiles_to_compare(None if machines is None else machines.split(","))
    prices = prices_of(price or (), list(profiles))
    asked = dict(map(read_question, matrices))
    rows, refused = [], dict[str, dict[str, str]]()
    with counted_bar(options.screen(), "forecasting", len(asked) * len(profiles)) as advance:
        found = api.compare(
            asked, profiles, products=products, prices=prices, model=model, on_machine=advance
        )
        for name, (own, why) in zip(asked, found, strict=True):
            rows += own
            refused |= {name: why} if why else {}
    if not rows:
        raise InputError(next(why for own in refused.values() for why in own.values()))
    if figure is not None:
        comparison_reports.draw(rows, f"{products:,} products, forecast", figure)
    if page is not None:
        held = {name: api.origin(each) or api.contents(each) for name, each in profiles.items()}
        report = MachineReport(matrices, rows, refused, held, prices, products)
        rendering.write(comparison_page(report), page)
    title = f"Forecast of {products:,} products, the fastest machine first"
    options.show(
        as_json,
        comparison_reports.document(rows, refused),
        comparison_reports.table(title, rows, refused),
    )
