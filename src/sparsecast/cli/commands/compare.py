"""sparsecast compare MATRIX... --machines A,B,C."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from sparsecast import api
from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.options import argument, option
from sparsecast.cli.output import Drawn, Output
from sparsecast.cli.reading import read_question, shown_parts
from sparsecast.system.texts import counted


@command("compare", Panel.FORECASTS, figure=True, csv=True)
def compare(
    matrices: Annotated[list[str], argument("MATRIX...", "As for predict, except tables.")],
    machines: Annotated[
        str | None, option("NAME|PATH[,NAME|PATH]", "Profiles to compare; all by default.")
    ] = None,
    products: options.ProductsOption = 1000,
    price: options.PriceOption = None,
    library: options.LibraryOption = None,
    model: options.ModelOption = None,
    anyway: options.AnywayOption = False,
    page: Annotated[Path | None, option("FILE.html", "Write the comparison as one HTML page.")] = None,
    force: options.ForceOption = False,
) -> Output:
    """Forecast products on several machines: time, energy and price side by side."""
    from sparsecast.reports.charts import intervals
    from sparsecast.reports.pages.rendering import comparison_page, write
    from sparsecast.results.placement import DOCUMENTS

    options.refuse_page(page, force)
    prices = api.prices_of(price or ())
    read = {text: read_question(text) for text in matrices}
    names = api.distinct_names({text: name for text, (name, _) in read.items()})
    questions = {names[text]: question for text, (_, question) in read.items()}
    with shown_parts():
        comparison = api.compare(
            questions,
            api.ALL if machines is None else machines,
            products=products,
            prices=prices,
            library=library,
            model=model,
            anyway=anyway,
        )
    if page is not None:
        write(comparison_page(matrices, comparison), page)
    done = counted(products, "product")
    title = f"Where to do {done}" + (f": {next(iter(questions))}" if len(questions) == 1 else "")

    def chart() -> Drawn:
        rows_of = {name: intervals.machine_rows(it.placements) for name, it in comparison.answers.items()}
        return intervals.times(rows_of, done), "Forecast on each machine"

    return Output(DOCUMENTS["compare"], comparison, [comparison.table(title)], chart=chart)
