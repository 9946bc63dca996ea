"""sparsecast gallery."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command


@command("gallery", Panel.MATRICES)
def gallery(
    draw: Annotated[bool, typer.Option("--draw", help="Draw them all into the file of --out.")] = False,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="With --draw: .png, .svg or .pdf.")
    ] = Path("gallery.png"),
    as_json: options.JsonOption = False,
) -> None:
    """List the matrices that gallery:NAME?key=value makes, with their parameters, or draw them."""
    from sparsecast.matrices.gallery import gallery_names, gallery_parameters, gallery_summary
    from sparsecast.reports import tables

    if draw:
        from sparsecast.reports.charts.chart import refuse_undrawable, render
        from sparsecast.reports.charts.patterns import gallery_patterns

        refuse_undrawable(out)
        render(gallery_patterns(), "The gallery", out)
        options.show(as_json, {"figure": str(out)}, f"{out} shows the gallery.")
        return
    listed = {name: (gallery_parameters(name), gallery_summary(name)) for name in gallery_names()}
    described = {name: {"parameters": own, "summary": text} for name, (own, text) in listed.items()}
    options.show(as_json, described, tables.gallery(listed))
