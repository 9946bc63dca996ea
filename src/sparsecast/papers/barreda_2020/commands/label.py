"""sparsecast label [MATRIX...]."""

from __future__ import annotations

from typing import Annotated

import typer

from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.output import Output
from sparsecast.cli.reading import pending_output
from sparsecast.errors import InputError


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
    from sparsecast.papers.barreda_2020 import block_reports, labelling

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
    shown = block_reports.labelling_sentence(done), *left_out
    stopped = "kept" if done.is_stopped else ""
    return Output(block_reports.DOCUMENTS["label"], done, shown, stopped=stopped)
