"""sparsecast measure MATRIX."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.output import Output
from sparsecast.cli.reading import read_matrix
from sparsecast.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from sparsecast.records import Candidate, Record


@command("measure", Panel.MEASUREMENTS, figure=True, csv=True)
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
            help="Under mpirun: algorithms, such as local-1d,2d; all of ours by default.",
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
) -> Output | None:
    """Measure the product here in every format that suits, and compare with the forecasts.

    Under mpirun, or with --algorithm, measure the products of many ranks.
    """
    from sparsecast import api

    if algorithm is not None or api.started_ranks() > 1:
        given = {"--threads": threads, "--profile": profile, "--meter-command": meter_command}
        given["--frequencies"] = frequencies
        options.refuse_beside_ranks(given, device)
        products: dict[str, Any] = {
            "formats": options.names(formats),
            "remote_format": remote_format,
            "partition": partition,
        }
        products |= {"algorithms": options.names(algorithm), "dtype": dtype}
        return _on_ranks(matrix, products, keep)
    alone = {"--format": formats, "--remote-format": remote_format, "--partition": partition}
    for name, value in alone.items():
        if value is not None:
            raise InputError(
                f"{name} {value} of one process: expected --algorithm beside it, or mpirun; name one"
            )
    metered = _Metered(meter_command, frequencies)
    return _alone(matrix, profile, threads, dtype, device, metered, keep)


def _on_ranks(matrix: str, products: dict[str, Any], keeps: bool) -> Output | None:
    """Measure on all ranks; rank 0 alone speaks."""
    from sparsecast import api
    from sparsecast.reports.charts import intervals
    from sparsecast.reports.charts.chart import render
    from sparsecast.results.cluster import DOCUMENTS

    with api.on_ranks() as comm:
        done = api.measure_on_ranks(comm, matrix, api.ProductOptions(**products), keeps=keeps)
    if done is None:
        return None

    def draw(path: Path) -> None:
        rows = intervals.rank_rows(done.measured, done.forecasts)
        name = done.problem.name
        render(intervals.times({name: rows}, "one product"), f"Measured on ranks: {name}", path)

    return Output(DOCUMENTS["measure --algorithm"], done, [done.table()], done.notes, draw)


@dataclass(frozen=True, slots=True)
class _Metered:
    """A meter of the user's own, and the frequencies as they were typed."""

    command: str | None
    frequencies: str | None

    def frequencies_hz(self, device: str) -> list[float | None]:
        """Return the frequencies, None for what the machine chooses itself."""
        from sparsecast import api

        if self.frequencies is None:
            return [None]
        try:
            hertz = [1e9 * float(number) for number in self.frequencies.split(",")]
        except ValueError:
            hertz = []
        if not hertz or not all(0 < hz < inf for hz in hertz) or device != api.PROCESSOR:
            raise InputError(
                f"--frequencies {self.frequencies} on {device}: expected frequencies in GHz of a processor, "
                f"such as 1.2,2.0; correct it"
            )
        return [*hertz]


def _alone(
    matrix: str,
    profile: str | None,
    threads: int | None,
    dtype: str | None,
    device: str,
    metered: _Metered,
    keep: bool,
) -> Output:
    from sparsecast import api
    from sparsecast.reports.charts import intervals
    from sparsecast.reports.charts.chart import render
    from sparsecast.reports.progress import counted_bar
    from sparsecast.results.measurement import DOCUMENTS, Measurements

    meter = None if metered.command is None else api.CommandMeter(metered.command)
    frequencies = metered.frequencies_hz(device)
    problem = read_matrix(matrix)
    choice = api.choice(problem, threads=threads, dtype=dtype, device=device)
    prediction = api.forecasts_at_hand(problem, profile, threads=threads, dtype=dtype, device=device)
    refused = dict(choice.refused)

    def leave_out(candidate: Candidate, why: InputError) -> None:
        refused.setdefault(candidate.format, str(why))

    steps = api.measuring_steps(choice.candidates) * len(frequencies)
    records: list[Record] = []
    with counted_bar(options.screen(), "measuring", steps) as advance:
        for hz in frequencies:
            with api.held_frequency(hz):
                records += api.measure_here(
                    problem,
                    choice.candidates,
                    api.machine_of(device),
                    keeps=keep and hz is None,  # forecasts are of the machine as it usually runs
                    meter=meter,
                    on_sample=advance,
                    on_left_out=leave_out,
                )
    forecasts = {forecast.candidate: forecast for forecast in prediction or ()}
    done = Measurements(problem.name, problem.structure, records, forecasts, refused)
    notes = []
    if meter is None and (why := api.unmetered(device)):
        notes.append(f"Energy is not measured: {why}")

    def draw(path: Path) -> None:
        rows = intervals.measured_rows(records, forecasts)
        title = f"Measured: {problem.name} on {api.machine_of(device).name}"
        render(intervals.times({problem.name: rows}, "one product"), title, path)

    shown: list[Any] = [done.table()]
    if prediction is None:
        on = "" if device == api.PROCESSOR else f" --device {device}"
        shown.append(f"No forecast: this machine has no calibration for it yet (sparsecast calibrate{on}).")
    return Output(DOCUMENTS["measure"], done, shown, notes, draw)
