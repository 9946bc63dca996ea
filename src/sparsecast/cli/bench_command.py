"""sparsecast bench."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sparsecast.cli.options import (
    DeviceOption,
    DtypeOption,
    JsonOption,
    ThreadsOption,
    page,
    print_document,
    screen,
)
from sparsecast.errors import InputError

if TYPE_CHECKING:
    from sparsecast.benchmark.gahvari.summary import BenchResult


def command(
    budget: Annotated[float, typer.Option(help="Seconds it may take, at least 60.")] = 300.0,
    threads: ThreadsOption = None,
    dtype: DtypeOption = None,
    device: DeviceOption = "cpu",
    block: Annotated[
        list[str] | None, typer.Option(metavar="RxC", help="A block size; all 36 by default.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the JSON document there as well.")
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw speed over dimension and density.")
    ] = None,
    compare: Annotated[
        tuple[Path, Path] | None,
        typer.Option(metavar="A.json B.json", help="Compare two results instead of measuring."),
    ] = None,
    twins: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Compare the matrices of a folder with synthetic twins instead."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Rate this machine: four figures for the product, in five minutes; keep what was measured."""
    if compare is not None:
        _compare(*compare, as_json)
        return
    if twins is not None:
        _measure_twins(twins, threads, dtype, device, as_json)
        return
    from sparsecast import api
    from sparsecast.reports import documents, figures
    from sparsecast.reports.progress import timed_bar

    if output is not None:
        _refuse_unwritable(output)
    if figure is not None:
        _refuse_unwritable(figure)
        figures.refuse_undrawable(figure)
    run = api.calibration(budget, threads=threads, dtype=dtype, device=device, blocks=block, rates=True)
    with timed_bar(screen(), "rating") as run.on_progress:
        run.run()
    found = api.bench_result(run)
    document = documents.finite(documents.bench(found))
    if output is not None:
        _write(output, document)
    if figure is not None and found.ratings:
        main = found.ratings[0]
        title = figures.speed_title(main, found.machine)
        figures.draw_speed_maps(figures.speed_maps(main), title, figure)
    if as_json:
        print_document(document)
    else:
        _show(found)
    if found.interrupted:
        screen().print("stopped from the keyboard: what was measured until then is kept")
        raise typer.Exit(130)


def _show(found: BenchResult) -> None:
    from sparsecast.reports import tables

    page().print(tables.bench(found))
    page().print(tables.bench_sentence(found), soft_wrap=True)
    for note in found.notes:
        page().print(f"- {note}", soft_wrap=True)


def _compare(first: Path, second: Path, as_json: bool) -> None:
    from sparsecast.benchmark.gahvari.comparison import compare, read_result
    from sparsecast.reports import documents, tables

    found = compare(read_result(first), read_result(second))
    if as_json:
        print_document(documents.comparison(found))
    else:
        page().print(tables.comparison(found))


def _measure_twins(folder: Path, threads: int | None, dtype: str | None, device: str, as_json: bool) -> None:
    from sparsecast import api
    from sparsecast.matrices.reading import matrix_files
    from sparsecast.reports import documents, tables
    from sparsecast.reports.progress import counted_bar

    files = matrix_files(folder)
    with counted_bar(screen(), "measuring", len(files)) as advance:
        found = api.twins(files, threads=threads, dtype=dtype, device=device, on_matrix=advance)
    if not found.rows and not found.interrupted:
        raise InputError(next(iter(found.refused.values())))
    if as_json:
        print_document(documents.twins(found))
    else:
        page().print(tables.twins(found))
    if found.interrupted:
        screen().print("stopped from the keyboard: what was measured until then is shown")
        raise typer.Exit(130)


def _refuse_unwritable(path: Path) -> None:
    """Raise if a file cannot be written, before minutes are spent on what goes into it."""
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise InputError(f"{path} cannot be written: expected a file in a writable folder; name another")


def _write(path: Path, document: dict[str, Any]) -> None:
    try:
        path.write_text(json.dumps(document, allow_nan=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{path} cannot be written ({error.strerror}): expected a file in a writable folder; name another"
        ) from error
