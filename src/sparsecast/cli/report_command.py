"""sparsecast report MATRIX."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from sparsecast.cli import options
from sparsecast.cli.profile_choice import profile_for


def command(
    matrix: options.MatrixArgument,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE.html", help="NAME.html here by default.")
    ] = None,
    iterations: Annotated[int, typer.Option(min=1, help="Products that the plan is for.")] = 1000,
    profile: options.ProfileOption = None,
    threads: options.ThreadsOption = None,
    dtype: options.DtypeOption = None,
    model: options.ModelOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Write one page about a matrix: forecasts, plan, roofline and trust, to look at and to send."""
    from sparsecast import api
    from sparsecast.reports.pages import rendering
    from sparsecast.reports.pages.matrix_page import matrix_page

    rendering.refuse_undrawable()
    found = api.read_matrix(matrix)
    path = output or Path(f"{rendering.file_name(found.name)}.html")
    options.refuse_unwritable(path)
    chosen = profile_for(found, profile, threads, dtype, None)
    asked: dict[str, Any] = {"iterations": iterations, "threads": threads, "dtype": dtype, "model": model}
    report = api.matrix_report(found, chosen, **asked)
    options.warn(report.prediction.notes)
    written = rendering.write(matrix_page(report), path)
    document = {"matrix": found.name, "profile": chosen.name, "path": str(path), "bytes": written}
    options.show(as_json, document, f"{path}: {written / 1e6:.1f} MB; open it in a browser.")
