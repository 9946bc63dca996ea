"""sparsecast measure MATRIX, sparsecast measure MATRIX|FOLDER..."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from sparsecast import api
from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.options import argument, option
from sparsecast.cli.output import Drawn, Output
from sparsecast.cli.reading import (
    counted_bar,
    pending_output,
    read_matrix,
    tell_taken_over,
    timed_bar,
    transposed,
)
from sparsecast.errors import InputError


@command("measure", Panel.MEASUREMENTS, figure=True, csv=True)
def measure(
    matrices: Annotated[
        list[str],
        argument(
            "MATRIX|FOLDER...",
            "A file, gallery:NAME or suitesparse:GROUP/NAME; several, or folders, are a collection.",
        ),
    ],
    setting: options.SettingGroup,
    collection: options.CollectionGroup,
    algorithm: Annotated[
        str | None,
        option("NAME[,NAME]", "Under mpirun: algorithms, such as local-1d,2d; all built-in ones by default."),
    ] = None,
    formats: Annotated[
        str | None,
        option("NAME[,NAME]", "Formats of the ranks' own parts; CSR by default.", "--format"),
    ] = None,
    remote_format: Annotated[
        str | None, option("NAME", "Format of non-zeros whose x other ranks own; CSR, or COO beside COO.")
    ] = None,
    partition: Annotated[
        str | None, option("NAME", "Partition: rows, nonzeros, metis or uniform-2d.")
    ] = None,
    meter_command: options.MeterCommandOption = None,
    meter: options.MeterOption = None,
    frequencies: options.FrequenciesOption = None,
    figure: options.FigureOption = None,
) -> Output | None:
    """Measure the product here in every suitable format and in SciPy, and compare with the forecasts.

    For a collection, evaluate compares with the forecasts. Under mpirun, or with --algorithm, measure
    products on many ranks.
    """
    from sparsecast.results.measurement import DOCUMENTS

    keep, shard, device = collection.keep, collection.shard, setting.device or "cpu"
    is_asked = collection.resume or collection.dry_run or shard is not None
    is_collection = is_asked or len(matrices) > 1 or Path(matrices[0]).is_dir()
    if algorithm is not None or api.started_ranks() > 1:
        if is_collection:
            asked = " ".join(matrices)
            raise InputError(f"{asked} with ranks: expected one matrix, measured in one run; name one")
        given = {name: value for name, value in setting.named.items() if name not in ("--dtype", "--device")}
        given |= {"--meter-command": meter_command, "--frequencies": frequencies, "--meter": meter}
        options.refuse_beside_ranks(given, device)
        products = api.ProductOptions(
            formats=options.names(formats),
            remote_format=remote_format,
            partition=partition,
            algorithms=options.names(algorithm),
            dtype=setting.dtype,
        )
        return _on_ranks(matrices[0], products, keep)
    alone = {"--format": formats, "--remote-format": remote_format, "--partition": partition}
    options.refuse_given(alone, "of one process: expected --algorithm beside it, or mpirun; name one")
    if collection.dry_run:
        return pending_output(api.pending(matrices, shard, device))
    counter, ghz = options.chosen_meter(meter, meter_command), options.frequencies_ghz(frequencies, device)
    if not is_collection:
        return _alone(matrices[0], setting, ghz, counter, keeps=keep)
    of_one = {"--profile": setting.profile, "--frequencies": frequencies, "--figure": figure}
    options.refuse_given(of_one, "of a collection: expected one matrix; name one, or leave it out")
    with timed_bar("measuring") as on_progress:
        done = api.measure_all(
            api.session(**setting.session_options),
            matrices,
            meter=counter,
            keeps=keep,
            transpose=setting.transpose,
            resume=collection.resume,
            shard=shard,
            on_progress=on_progress,
        )
    if done.refused and not done.rows and not done.interrupted:
        raise InputError(next(iter(done.refused.values())))
    tell_taken_over(done.taken_over)
    stopped = collection.stopped if done.interrupted else ""
    return Output(DOCUMENTS["measure FOLDER"], done, [done.table()], stopped=stopped)


def _on_ranks(matrix: str, products: api.ProductOptions, keeps: bool) -> Output | None:
    """Measure on all ranks; rank 0 alone speaks."""
    from sparsecast.reports.charts import intervals
    from sparsecast.results.cluster import DOCUMENTS

    with api.on_ranks() as comm:
        done = api.measure_on_ranks(comm, matrix, products, keeps=keeps)
    if done is None:
        return None
    name = done.problem.name

    def chart() -> Drawn:
        rows = {name: intervals.rank_rows(done.measured)}
        return intervals.times(rows, "one product"), f"Measured on ranks: {name}"

    return Output(DOCUMENTS["measure --algorithm"], done, [done.table()], done.notes, chart)


def _alone(
    matrix: str, setting: options.SettingGroup, ghz: list[float], meter: api.Meter | None, *, keeps: bool
) -> Output:
    from sparsecast.reports.charts import intervals
    from sparsecast.results.measurement import DOCUMENTS, Measurements

    frequencies: list[float | None] = [1e9 * each for each in ghz] or [None]
    keeps = keeps and not ghz  # forecasts are of the machine as it usually runs
    notes: list[str] = []
    problem = read_matrix(matrix)
    problem = transposed(problem, notes) if setting.transpose else problem
    device, library = setting.device or "cpu", setting.library
    if (device, setting.vectors) == ("cpu", 1) and library != "any":  # the last line says how they compare
        library = f"{library},scipy" if library else "scipy"
    session = api.session(setting.profile, **setting.session_options | {"device": device, "library": library})
    choice = session.choice(problem)
    prediction = session.forecasts_at_hand(problem)
    records, refused = [], dict(choice.refused)
    with counted_bar("measuring", api.measuring_steps(choice.candidates) * len(frequencies)) as advance:
        for hz in frequencies:
            with api.held_frequency(hz):
                some, left_out = api.measure_here(
                    problem, choice.candidates, keeps=keeps, meter=meter, on_sample=advance
                )
            records += some
            for candidate, error in left_out.items():
                refused.setdefault(candidate.format, str(error))
    forecasts = {forecast.candidate: forecast for forecast in prediction or ()}
    rounding = api.rounding(problem, session.setting)
    notes += [rounding.sentence()] if rounding else []
    done = Measurements(problem.name, problem.structure, records, forecasts, refused, rounding)
    if meter is None and (why := api.unmetered(device)):
        notes.append(f"Energy is not measured: {why}")

    def chart() -> Drawn:
        rows = {problem.name: intervals.measured_rows(records, forecasts)}
        title = f"Measured: {problem.name} on {api.machine_of(device).name}"
        return intervals.times(rows, "one product"), title

    shown: list[Any] = [done.table()]
    if prediction is None:
        on = "" if device == api.PROCESSOR else f" --device {device}"
        shown.append(f"No forecast: this machine has no calibration for it yet (sparsecast calibrate{on}).")
    shown += [done.comparison.sentence()] if done.comparison else []
    shown += [sentence] if (sentence := done.accuracy()) else []
    return Output(DOCUMENTS["measure"], done, shown, notes, chart)
