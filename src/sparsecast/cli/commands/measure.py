"""sparsecast measure MATRIX."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.rank_options import refuse_beside_ranks
from sparsecast.cli.reading import read_matrix
from sparsecast.errors import InputError

if TYPE_CHECKING:
    from sparsecast.records import Candidate


@command("measure", Panel.MEASUREMENTS)
def measure(
    matrix: options.MatrixArgument,
    profile: options.ProfileOption = None,
    threads: options.ThreadsOption = None,
    dtype: options.DtypeOption = None,
    device: options.DeviceOption = "cpu",
    algorithm: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[,NAME]",
            help="Under mpirun: global-1d, local-1d, local-1d-overlap, 2d, petsc; all of ours by default.",
        ),
    ] = None,
    formats: Annotated[
        str | None, typer.Option("--format", metavar="NAME[,NAME]", help="Of ranks' parts; CSR by default.")
    ] = None,
    remote_format: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Of entries whose x other ranks own; CSR, or COO beside COO."),
    ] = None,
    partition: Annotated[
        str | None, typer.Option(metavar="NAME", help="rows, nonzeros, metis, uniform-2d.")
    ] = None,
    meter_command: options.MeterCommandOption = None,
    frequencies: Annotated[
        str | None,
        typer.Option(metavar="GHZ", help="Such as 1.2,2.0: the cores' frequencies, set where permitted."),
    ] = None,
    keep: options.KeepOption = True,
    figure: options.FigureOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Measure the product here in every format that suits, and compare with the forecasts.

    Under mpirun, or with --algorithm, measure the products of many ranks.
    """
    from sparsecast.distributed.processes import started_ranks

    options.refuse_figure(figure)
    if algorithm is not None or started_ranks() > 1:
        given = {"--threads": threads, "--profile": profile, "--meter-command": meter_command}
        given["--frequencies"] = frequencies
        refuse_beside_ranks({name: value for name, value in given.items() if value is not None}, device)
        asked: dict[str, Any] = {
            "formats": _names(formats),
            "remote_format": remote_format,
            "partition": partition,
        }
        asked |= {"algorithms": _names(algorithm), "dtype": dtype}
        return _on_ranks(matrix, asked, keep, figure, as_json)
    alone = {"--format": formats, "--remote-format": remote_format, "--partition": partition}
    for name, value in alone.items():
        if value is not None:
            raise InputError(
                f"{name} {value} of one process: expected --algorithm beside it, or mpirun; name one"
            )
    metered = _Metered(meter_command, frequencies)
    return _alone(matrix, profile, threads, dtype, device, metered, keep, figure, as_json)


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [each.strip() for each in text.split(",")]


def _on_ranks(matrix: str, asked: dict[str, Any], keeps: bool, figure: Path | None, as_json: bool) -> None:
    """Measure on all ranks; rank 0 alone speaks."""
    from sparsecast import api
    from sparsecast.reports import distributed_reports
    from sparsecast.reports.charts import intervals
    from sparsecast.reports.charts.chart import render

    with api.on_ranks() as comm:
        found = api.measure_on_ranks(comm, matrix, api.AskedProducts(**asked), keeps=keeps)
        if found is None:
            return
        name = found.problem.name
        options.warn(found.notes)
        shown = found.measured, found.forecasts, found.refused
        if figure is not None:
            rows = intervals.rank_rows(found.measured, found.forecasts)
            render(intervals.times({name: rows}, "one product"), f"Measured on ranks: {name}", figure)
        document = distributed_reports.document(found.problem.sampled_structure, name, *shown)
        options.show(as_json, document, distributed_reports.table(f"Measured: {name}", *shown))


@dataclass(frozen=True, slots=True)
class _Metered:
    """A meter of the user's own, and the frequencies that were asked for, as they were typed."""

    command: str | None
    frequencies: str | None

    def frequencies_hz(self, device: str) -> list[float | None]:
        """Return the frequencies, None for what the machine chooses itself."""
        from sparsecast.machines.machine import PROCESSOR

        if self.frequencies is None:
            return [None]
        try:
            found = [1e9 * float(each) for each in self.frequencies.split(",")]
        except ValueError:
            found = []
        if not found or not all(0 < each < inf for each in found) or device != PROCESSOR:
            raise InputError(
                f"--frequencies {self.frequencies} on {device}: expected frequencies in GHz of a processor, "
                f"such as 1.2,2.0; correct it"
            )
        return [*found]


def _alone(
    matrix: str,
    profile: str | None,
    threads: int | None,
    dtype: str | None,
    device: str,
    asked: _Metered,
    keep: bool,
    figure: Path | None,
    as_json: bool,
) -> None:
    from sparsecast import api
    from sparsecast.machines.machine import PROCESSOR
    from sparsecast.reports import documents, tables
    from sparsecast.reports.charts import intervals
    from sparsecast.reports.charts.chart import render
    from sparsecast.reports.progress import counted_bar

    meter = None if asked.command is None else api.CommandMeter(asked.command)
    frequencies = asked.frequencies_hz(device)
    found = read_matrix(matrix)
    choice = api.choice(found, threads=threads, dtype=dtype, device=device)
    prediction = api.forecasts_at_hand(found, profile, threads=threads, dtype=dtype, device=device)
    refused = dict(choice.refused)

    def leave_out(candidate: Candidate, why: InputError) -> None:
        refused.setdefault(candidate.format, str(why))

    forecasts = {forecast.candidate: forecast for forecast in prediction or ()}
    steps = api.measuring_steps(choice.candidates) * len(frequencies)
    records = []
    with counted_bar(options.screen(), "measuring", steps) as advance:
        for hz in frequencies:
            with api.held_frequency(hz):
                records += api.measure_here(
                    found,
                    choice.candidates,
                    api.machine_of(device),
                    keeps=keep and hz is None,  # forecasts are of the machine as it usually runs
                    meter=meter,
                    on_sample=advance,
                    on_left_out=leave_out,
                )
    if meter is None and (why := api.unmetered(device)):
        options.warn([f"Energy is not measured: {why}"])
    if figure is not None:
        rows = intervals.measured_rows(records, forecasts)
        title = f"Measured: {found.name} on {api.machine_of(device).name}"
        render(intervals.times({found.name: rows}, "one product"), title, figure)
    document = {
        "matrix": documents.matrix(found.structure, found.name),
        "measurements": [documents.measurement(r, forecasts.get(r.candidate)) for r in records],
        "refused": refused,
    }
    table = tables.measurements(f"Measured: {found.name}", records, forecasts, refused)
    on = "" if device == PROCESSOR else f" --device {device}"
    without = f"No forecast: this machine has no calibration for it yet (sparsecast calibrate{on})."
    options.show(as_json, document, table, *([without] if prediction is None else []))
