"""sparsecast measure MATRIX."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.output import Output
from sparsecast.cli.reading import read_matrix, transposed
from sparsecast.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from sparsecast.api import Meter
    from sparsecast.records import Candidate, Record


@command("measure", Panel.MEASUREMENTS, figure=True, csv=True)
def measure(
    matrix: options.MatrixArgument,
    profile: options.ProfileOption = None,
    threads: options.AnyThreadsOption = None,
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
    meter: options.MeterOption = None,
    frequencies: options.FrequenciesOption = None,
    vectors: options.VectorsOption = 1,
    values: options.ValuesOption = None,
    library: options.LibraryOption = None,
    transpose: options.TransposeOption = False,
    keep: options.KeepOption = True,
) -> Output | None:
    """Measure the product here in every format that suits, and compare with the forecasts.

    Under mpirun, or with --algorithm, measure the products of many ranks.
    """
    from sparsecast import api

    if algorithm is not None or api.started_ranks() > 1:
        given: dict[str, Any] = {"--threads": threads, "--profile": profile, "--meter-command": meter_command}
        given |= {"--frequencies": frequencies, "--meter": meter, "--values": values, "--library": library}
        given |= {"--vectors": None if vectors == 1 else vectors, "--transpose": transpose or None}
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
    how = _How(options.chosen_meter(meter, meter_command), options.frequencies_ghz(frequencies, device), keep)
    setting: dict[str, Any] = {"threads": threads, "dtype": dtype, "device": device, "vectors": vectors}
    setting |= {"values": values, "library": library}
    return _alone(matrix, profile, setting, transpose, how)


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
class _How:
    """With which meter, at which frequencies, and whether Records are kept."""

    meter: Meter | None
    frequencies_ghz: list[float]
    keeps: bool


def _alone(
    matrix: str, profile: str | None, setting: dict[str, Any], is_transposed: bool, how: _How
) -> Output:
    from sparsecast import api
    from sparsecast.reports.charts import intervals
    from sparsecast.reports.charts.chart import render
    from sparsecast.reports.progress import counted_bar
    from sparsecast.results.measurement import DOCUMENTS, Measurements

    frequencies: list[float | None] = [1e9 * ghz for ghz in how.frequencies_ghz]
    frequencies = frequencies or [None]
    notes: list[str] = []
    problem = read_matrix(matrix)
    problem = transposed(problem, notes) if is_transposed else problem
    device = setting["device"]
    choice = api.choice(problem, **setting)
    prediction = api.forecasts_at_hand(problem, profile, **setting)
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
                    keeps=how.keeps and hz is None,  # forecasts are of the machine as it usually runs
                    meter=how.meter,
                    on_sample=advance,
                    on_left_out=leave_out,
                )
    forecasts = {forecast.candidate: forecast for forecast in prediction or ()}
    rounding = api.rounding(problem, setting["values"], setting["dtype"])
    notes += [rounding.sentence()] if rounding else []
    done = Measurements(problem.name, problem.structure, records, forecasts, refused, rounding)
    if how.meter is None and (why := api.unmetered(device)):
        notes.append(f"Energy is not measured: {why}")

    def draw(path: Path) -> None:
        rows = intervals.measured_rows(records, forecasts)
        title = f"Measured: {problem.name} on {api.machine_of(device).name}"
        render(intervals.times({problem.name: rows}, "one product"), title, path)

    shown: list[Any] = [done.table()]
    if prediction is None:
        on = "" if device == api.PROCESSOR else f" --device {device}"
        shown.append(f"No forecast: this machine has no calibration for it yet (sparsecast calibrate{on}).")
    shown += [done.comparison.sentence()] if done.comparison else []
    return Output(DOCUMENTS["measure"], done, shown, notes, draw)
