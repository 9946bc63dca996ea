"""sparsecast bench."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command
from sparsecast.errors import InputError


@command("bench", Panel.MACHINES)
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
    figure: options.FigureOption = None,
    compare: Annotated[
        tuple[Path, Path] | None,
        typer.Option(metavar="A.json B.json", help="Compare two results instead of measuring."),
    ] = None,
    twin_folder: Annotated[
        Path | None,
        typer.Option(
            "--twins", metavar="FOLDER", help="Compare the matrices of a folder with synthetic twins instead."
        ),
    ] = None,
    as_json: options.JsonOption = False,
) -> None:
    """Rate this machine by four figures in five minutes, and keep the measurements."""
    if compare is not None:
        _compare(*compare, as_json)
        return
    if twin_folder is not None:
        _measure_twins(twin_folder, threads, dtype, device, as_json)
        return
    from sparsecast.papers.gahvari_2007 import bench_figures, bench_reports, rating
    from sparsecast.reports import documents
    from sparsecast.reports.progress import timed_bar

    if output is not None:
        options.refuse_unwritable(output)
    options.refuse_figure(figure)
    with timed_bar(options.screen(), "rating") as on_progress:
        result = rating.bench(
            budget, threads=threads, dtype=dtype, device=device, blocks=block, on_progress=on_progress
        )
    document = documents.finite(bench_reports.bench_document(result))
    if output is not None:
        _write(output, document)
    if figure is not None and result.ratings:
        main = result.ratings[0]
        title = bench_figures.speed_title(main, result.machine)
        shown = bench_figures.speed_maps(main), bench_figures.series_speeds(main), main.figures
        bench_figures.draw_bench(*shown, title, figure)
    notes = (f"- {note}" for note in result.notes)
    sentence = bench_reports.sentence_of(result.ratings)
    options.show(as_json, document, bench_reports.bench_table(result), sentence, *notes)
    if result.interrupted:
        options.stop("kept")


def _compare(first: Path, second: Path, as_json: bool) -> None:
    from sparsecast.papers.gahvari_2007.bench_reports import comparison_document, comparison_table
    from sparsecast.papers.gahvari_2007.comparison import compare, read_result

    comparison = compare(read_result(first), read_result(second))
    options.show(as_json, comparison_document(comparison), comparison_table(comparison))


def _measure_twins(folder: Path, threads: int | None, dtype: str | None, device: str, as_json: bool) -> None:
    from sparsecast.matrices.reading import matrix_files
    from sparsecast.papers.gahvari_2007.bench_reports import twins_document, twins_table
    from sparsecast.papers.gahvari_2007.rating import twins
    from sparsecast.reports.progress import counted_bar

    files = matrix_files(folder)
    with counted_bar(options.screen(), "measuring", len(files)) as advance:
        found = twins(files, threads=threads, dtype=dtype, device=device, on_matrix=advance)
    if not found.rows and not found.interrupted:
        raise InputError(next(iter(found.refused.values())))
    options.show(as_json, twins_document(found), twins_table(found))
    if found.interrupted:
        options.stop("shown")


def _write(path: Path, document: dict[str, Any]) -> None:
    try:
        path.write_text(json.dumps(document, allow_nan=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise options.unwritable(path, f" ({error.strerror})") from error
