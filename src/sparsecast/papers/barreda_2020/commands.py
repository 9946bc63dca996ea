"""The commands `blocks`, `label` and `train`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.output import Output
from sparsecast.cli.reading import pending_output, read_matrix
from sparsecast.errors import InputError


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
    from sparsecast.papers.barreda_2020.block_forecast import (
        DOCUMENTS,
        block_chart,
        block_forecast,
        block_picture,
    )

    problem = read_matrix(matrix)
    chosen = api.profile(profile) if profile else None
    forecast = block_forecast(problem, chosen, threads=threads, network=network)
    shown = block_picture(forecast), *problem.notes

    title = f"{forecast.matrix} on {forecast.profile}"
    return Output(DOCUMENTS["blocks"], forecast, shown, chart=lambda: (block_chart(forecast), title))


@command("label", Panel.MEASUREMENTS)
def label(
    matrices: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MATRIX|FOLDER]...", help="By default the matrices of this machine's profile."
        ),
    ] = None,
    dtype: Annotated[
        str | None, typer.Option(metavar="float64|float32", help="Type of the values; each matrix' own.")
    ] = None,
    budget: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="No matrix is begun after so long.")
    ] = None,
    meter_command: options.MeterCommandOption = None,
    meter: options.MeterOption = None,
    frequencies: options.FrequenciesOption = None,
    shard: options.ShardOption = None,
    dry_run: options.DryRunOption = False,
) -> Output:
    """Measure blocks of 250 entries on this machine; the model blocks and the networks learn from them."""
    from sparsecast.papers.barreda_2020 import labelling

    if dry_run:
        return pending_output(labelling.pending_labels(matrices or (), dtype, shard))
    screen = options.screen()
    done = labelling.label(
        matrices or (),
        dtype=dtype,
        budget_s=budget,
        meter=options.chosen_meter(meter, meter_command),
        frequencies_ghz=options.frequencies_ghz(frequencies),
        shard=shard,
        on_matrix=lambda name, what: screen.print(f"{name}: {what}", soft_wrap=True, markup=False),
    )
    if done.refused and not (done.labelled or done.known or done.left):
        raise InputError(next(iter(done.refused.values())))
    left_out = [f"Left out: {name}: {reason}" for name, reason in done.refused.items()]
    shown = done.sentence(), *left_out
    stopped = "kept" if done.is_stopped else ""
    return Output(labelling.DOCUMENTS["label"], done, shown, stopped=stopped)


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
    from sparsecast.papers.barreda_2020 import training
    from sparsecast.reports.progress import parts_bar
    from sparsecast.system.tabular import Table

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
    table = Table("Errors on matrices that were not learned from", training.NETWORK, networks)
    shown = table, *training.sentences(networks)
    return Output(training.DOCUMENTS["train"], {"networks": networks}, shown)
