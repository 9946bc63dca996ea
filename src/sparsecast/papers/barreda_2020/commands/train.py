"""sparsecast train."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.output import Output


@command("train", Panel.MEASUREMENTS, csv=True)
def train(
    quantity: Annotated[
        str | None,
        typer.Option(metavar="NAME[,NAME]", help="time, total, package, dram, streaming; what labels have."),
    ] = None,
    frequencies: Annotated[
        str | None, typer.Option(metavar="GHZ", help="Of the labels; all of label --frequencies by default.")
    ] = None,
    network: Annotated[
        str, typer.Option(metavar="paper|ours", help="The paper's sees distances of columns, ours rows, too.")
    ] = "paper",
    split: Annotated[
        str, typer.Option(metavar="groups|paper", help="What is set aside for validation and test.")
    ] = "groups",
    published: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Learn from the authors' labels, HDF5 files.")
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="At most.")] = 100,
    blocks: Annotated[int, typer.Option(min=1, help="Of one matrix at most.")] = 1024,
    search: Annotated[
        int, typer.Option(min=0, metavar="TRIALS", help="First search the hyper-parameters.")
    ] = 0,
    folds: Annotated[int, typer.Option(min=0, help="Parts of a cross-validation; 5 in the paper.")] = 0,
) -> Output:
    """Train networks of blocks on labels, and score them on matrices that they have not seen."""
    from sparsecast.papers.barreda_2020 import network_training as training
    from sparsecast.reports.progress import parts_bar

    names = options.names(quantity)
    request = training.TrainingRequest(
        None if names is None else tuple(names),
        tuple(options.frequencies_ghz(frequencies)),
        network,
        split,
        published,
        epochs,
        blocks,
        search,
        folds,
    )
    with parts_bar(options.screen()) as on_part:
        networks = list(training.trained(request, on_part))
    shown = training.network_table(networks), *training.sentences(networks)
    return Output(training.DOCUMENTS["train"], {"networks": networks}, shown)
