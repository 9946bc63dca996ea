"""sparsecast paper, sparsecast paper NAME [MATRIX...]."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from sparsecast import api
from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.options import argument, option
from sparsecast.cli.output import Output
from sparsecast.cli.reading import timed_bar
from sparsecast.system.files import unwritable, write_file


@command("paper", Panel.MEASUREMENTS, csv=True)
def paper(
    name: Annotated[
        str | None, argument("NAME", "Name of a paper; without one, all papers are listed.")
    ] = None,
    matrices: Annotated[
        list[str] | None, argument("MATRIX", "Matrices in place of its own; barreda-2020 takes both.")
    ] = None,
    device: options.DeviceOption = "cpu",
    dtype: options.DtypeOption = None,
    profile: options.ProfileOption = None,
    budget: Annotated[float, option(None, "Time budget of the measurements in seconds.", min=1)] = 600.0,
    records: Annotated[
        str | None, option("NAME|PATH", "Take the records of this profile; measure nothing.", "--from")
    ] = None,
    folder: Annotated[
        Path | None,
        option("FOLDER", "Write the page, in Markdown, and its charts to this folder.", "--figure"),
    ] = None,
) -> Output:
    """Repeat the experiment of a paper: its tables with our numbers next to the printed ones."""
    from sparsecast.results.paper import DOCUMENTS, LISTED
    from sparsecast.system.tabular import Table

    if name is None:
        listed = api.listed_papers()
        table = Table("Papers that `sparsecast paper NAME` repeats", LISTED, listed)
        return Output(DOCUMENTS["paper"], {"papers": listed}, [table])
    if folder is not None:  # refused before anything is measured for it
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(folder, f" ({error.strerror})") from error
        options.refuse_figure(folder / "chart.svg")
    with timed_bar(name) as on_progress:
        chosen, taken = (api.profile(wanted) if wanted else None for wanted in (profile, records))
        setting = api.ExperimentSetting(device, dtype, chosen, budget, tuple(matrices or ()), on_progress)
        report = api.paper(name, setting, taken)
    if folder is not None:
        from sparsecast.reports.charts.chart import render

        for chart_name, chart in report.charts.items():
            render(chart, chart.caption, folder / f"{chart_name}.svg")
        command_line = " ".join(["sparsecast", *sys.argv[1:]])
        write_file(folder / f"{report.paper.name}.md", report.to_markdown(command_line).encode())
    shown = [*report.tables, report.item_table, *report.notes]
    return Output(DOCUMENTS["paper NAME"], report, shown)
