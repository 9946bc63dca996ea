"""sparsecast blocks MATRIX."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.output import Output
from sparsecast.cli.reading import read_matrix


@command("blocks", Panel.MEASUREMENTS, figure=True)
def blocks(
    matrix: options.MatrixArgument,
    profile: options.ProfileOption = None,
    threads: Annotated[int | None, typer.Option(help="Threads that share a product; one by default.")] = None,
    network: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.safetensors|shipped",
            help="Ask a trained network, or that of the package; by default the model blocks.",
        ),
    ] = None,
) -> Output:
    """Show where in a matrix a product with CSR is slow: the forecast of each block of 250 entries."""
    from sparsecast import api
    from sparsecast.papers.barreda_2020.block_forecast import block_forecast
    from sparsecast.papers.barreda_2020.block_reports import DOCUMENTS, block_chart, block_picture

    problem = read_matrix(matrix)
    chosen = api.profile(profile) if profile else None
    forecast = block_forecast(problem, chosen, threads=threads, network=network)
    shown = block_picture(forecast), *problem.notes

    title = f"{forecast.matrix} on {forecast.profile}"
    return Output(DOCUMENTS["blocks"], forecast, shown, chart=lambda: (block_chart(forecast), title))
