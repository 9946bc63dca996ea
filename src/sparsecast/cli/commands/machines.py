"""sparsecast machines, machines show NAME, machines import FILE --name NAME."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from sparsecast import api
from sparsecast.cli import options
from sparsecast.cli.commands import COMMANDS, Command, Panel
from sparsecast.cli.options import argument, option
from sparsecast.cli.output import Drawn, Output, printed
from sparsecast.errors import InputError

group = typer.Typer(invoke_without_command=True, add_completion=False)
COMMANDS.register("machines")(Command(group, Panel.MACHINES))


def _overview(
    context: typer.Context,
    profile: Annotated[str | None, option("NAME|PATH", "Profile to draw; this machine's by default.")] = None,
    figure: options.FigureOption = None,
) -> Output | None:
    """Describe this machine and list profiles, or import published results."""
    if context.invoked_subcommand is not None:
        return None
    from sparsecast.reports.charts import rooflines
    from sparsecast.results.machines import DOCUMENTS

    if profile is not None and figure is None:
        raise InputError(f"--profile {profile} without --figure: expected a file to draw it in; name one")
    here = api.machines_at_hand()
    notes = [f"{name}, {sentence}" for name, sentences in here.disturbances.items() for sentence in sentences]

    def chart() -> Drawn:
        drawn = api.profile(profile)
        return rooflines.machine(drawn), drawn.name

    return Output(DOCUMENTS["machines"], here, [here.table()], notes, chart)


def _show(
    name: Annotated[
        str,
        argument("NAME|PATH", "Name or path of a profile.", autocompletion=options.matching_profiles),
    ],
) -> Output:
    """Show the contents of a profile: the machine, the speeds of memory and kernels, and disturbances."""
    from sparsecast.results.machines import DOCUMENTS, kernel_speeds
    from sparsecast.system.tabular import document

    profile, columns = api.profile(name), DOCUMENTS["machines show"]
    shown = {"here": api.machines_at_hand(profile), "gflops": kernel_speeds(profile.records)}
    return Output(columns, shown, [json.dumps(document(columns, shown), allow_nan=False, indent=2)])


def _import(
    files: Annotated[
        list[Path], argument("FILE...", "Tables (.csv, .csv.gz), or Ginkgo's JSON (files or a folder).")
    ],
    name: Annotated[str, option("NAME", "Name of the new profile.")],
    machine: Annotated[
        str | None, option("MACHINE", "Machine of the files, if they have several or name none.")
    ] = None,
) -> Output:
    """Make a profile from published results, to forecast for their machine."""
    from sparsecast.results.machines import DOCUMENTS

    imported, path = api.import_machine(files, name, machine)
    first, *left_out = imported.sentences()
    profile = imported.profile
    item = {"profile": profile, "path": str(path), "records": profile.records, "left_out": imported.left_out}
    return Output(DOCUMENTS["machines import"], item, [first, str(path), *left_out])


group.callback()(printed(_overview, figure=True, csv=True))
group.command("show")(printed(_show, figure=False, csv=False))
group.command("import")(printed(_import, figure=False, csv=False))
