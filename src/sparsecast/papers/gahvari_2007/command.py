"""sparsecast bench."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.output import Drawn, Output
from sparsecast.system.files import write_file


@command("bench", Panel.MACHINES, figure=True, csv=True)
def bench(
    budget: Annotated[float, typer.Option(help="Seconds it may take, at least 60.")] = 300.0,
    threads: options.ThreadsOption = None,
    dtype: options.DtypeOption = None,
    device: options.DeviceOption = "cpu",
    block: Annotated[
        list[str] | None, typer.Option(metavar="RxC", help="A block size; all 36 by default.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the JSON document there as well.")
    ] = None,
    compare: Annotated[
        tuple[Path, Path] | None,
        typer.Option(metavar="A.json B.json", help="Compare two results instead of measuring."),
    ] = None,
    real_folder: Annotated[
        Path | None,
        typer.Option(
            "--real", metavar="FOLDER", help="Compare the matrices of a folder with the kept figures instead."
        ),
    ] = None,
) -> Output:
    """Rate this machine by four figures in five minutes, and keep the measurements."""
    if compare is not None:
        from sparsecast.papers.gahvari_2007 import bench_reports

        comparison = bench_reports.compare(*compare)
        columns = bench_reports.DOCUMENTS["bench --compare A.json B.json"]
        return Output(columns, comparison, [bench_reports.comparison_table(comparison)])
    if real_folder is not None:
        return _measure_real(real_folder, budget, threads, dtype, device)
    from sparsecast.papers.gahvari_2007 import bench_charts, bench_reports, suite
    from sparsecast.reports.progress import timed_bar
    from sparsecast.system.tabular import document

    if output is not None:
        options.refuse_unwritable(output)
    with timed_bar(options.screen(), "rating") as on_progress:
        result = suite.bench(
            budget, threads=threads, dtype=dtype, device=device, blocks=block, on_progress=on_progress
        )
    columns, main = bench_reports.DOCUMENTS["bench"], result.main
    if output is not None:
        write_file(output, (json.dumps(document(columns, result), allow_nan=False) + "\n").encode())
    phases = ", ".join(f"{phase} {seconds:.0f} s" for phase, seconds in result.phases.items())
    used = f"{result.used_s:.0f} of {result.budget_s:g} s used: {phases}"
    tables = bench_reports.rating_tables(f"MFLOP/s of {result.machine.name}", result.ratings, used)
    notes = (f"- {note}" for note in result.notes)
    shown = *tables, bench_reports.sentence_of(result.ratings), *notes
    return Output(
        columns,
        result,
        shown,
        chart=lambda: None if main is None else (bench_charts.bench(main), bench_charts.speed_title(main)),
        stopped="kept" if result.interrupted else "",
    )


def _measure_real(
    folder: Path, budget_s: float, threads: int | None, dtype: str | None, device: str
) -> Output:
    from sparsecast.devices import machine_of
    from sparsecast.machines.profile import find_profile
    from sparsecast.matrices.reading import matrix_files
    from sparsecast.papers.gahvari_2007 import bench_charts
    from sparsecast.papers.gahvari_2007.bench_reports import DOCUMENTS, real_tables
    from sparsecast.papers.gahvari_2007.real_matrices import real_matrices
    from sparsecast.papers.gahvari_2007.summary import rated
    from sparsecast.reports.charts.chart import stacked
    from sparsecast.reports.progress import timed_bar

    files = matrix_files(folder)
    figures = rated(find_profile(None, machine_of(device)), dtype, threads)
    with timed_bar(options.screen(), "measuring") as on_progress:
        measured = real_matrices(files, figures, budget_s, on_progress)

    def chart() -> Drawn | None:
        charts = list(bench_charts.real(measured).values())
        return (stacked("real", charts), bench_charts.speed_title(figures)) if measured.rows else None

    stopped = "kept" if measured.interrupted else ""
    return Output(
        DOCUMENTS["bench --real FOLDER"], measured, real_tables(measured), chart=chart, stopped=stopped
    )
