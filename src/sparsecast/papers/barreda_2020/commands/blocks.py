"""sparsecast blocks MATRIX."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.reading import read_matrix


@command("blocks", Panel.MEASUREMENTS)
def blocks(
    matrix: options.MatrixArgument,
    profile: options.ProfileOption = None,
    threads: Annotated[int | None, typer.Option(help="Threads that share a product; one by default.")] = None,
    network: Annotated[
        Path | None,
        typer.Option(metavar="FILE.safetensors", help="Ask a trained network; by default the model blocks."),
    ] = None,
    figure: options.FigureOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Show where in a matrix a product with CSR is slow: the forecast of each block of 250 entries."""
    from sparsecast import api
    from sparsecast.papers.barreda_2020 import block_reports
    from sparsecast.papers.barreda_2020.block_forecast import block_forecast

    options.refuse_figure(figure)
    found = read_matrix(matrix)
    chosen = api.profile(profile) if profile else None
    forecast = block_forecast(found, chosen, threads=threads, network=network)
    if figure is not None:
        block_reports.draw_blocks(forecast, figure)
    options.show(as_json, block_reports.blocks(forecast), block_reports.block_picture(forecast), *found.notes)
