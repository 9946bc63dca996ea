"""sparsecast gallery."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from sparsecast import api
from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.options import flag, option
from sparsecast.cli.output import Output


@command("gallery", Panel.MATRICES, csv=True)
def gallery(
    draw: Annotated[bool, flag("--draw", "Draw all of them to the file of --out.")] = False,
    out: Annotated[Path, option("FILE", "File of --draw: .png, .svg or .pdf.", "--out", "-o")] = Path(
        "gallery.png"
    ),
    force: options.ForceOption = False,
) -> Output:
    """List the matrices that gallery:NAME?key=value makes, with their parameters, or draw them."""
    from sparsecast.results.structure import DOCUMENTS, gallery_table
    from sparsecast.system.tabular import Column

    if draw:
        from sparsecast.reports.charts.chart import render
        from sparsecast.reports.charts.patterns import gallery_patterns

        options.refuse_taken(out, force)
        options.refuse_figure(out)
        render(gallery_patterns(), "The gallery", out)
        return Output(DOCUMENTS["gallery --draw"], {"figure": str(out)}, [f"{out} shows the gallery."])
    listed = api.gallery_matrices()
    columns = tuple(Column(name, columns=DOCUMENTS["gallery"][0].columns) for name in listed)
    return Output(columns, listed, [gallery_table(listed)])
