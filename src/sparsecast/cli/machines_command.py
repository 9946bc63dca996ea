"""sparsecast machines, sparsecast machines import FILE --name NAME."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sparsecast.cli import options
from sparsecast.errors import InputError

group = typer.Typer(invoke_without_command=True, add_completion=False)


@group.callback()
def command(
    context: typer.Context,
    profile: Annotated[
        str | None, typer.Option(metavar="NAME|PATH", help="Draw this one; this machine's by default.")
    ] = None,
    figure: options.FigureOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Describe this machine and list the profiles at hand, or import published results as one."""
    if context.invoked_subcommand is not None:
        return
    from sparsecast import api
    from sparsecast.machines.profile import Profile
    from sparsecast.reports import documents, machine_figures, tables

    options.refuse_figure(figure)
    if figure is not None:
        drawn = api.profile(profile)
        machine_figures.draw_machine(machine_figures.machine_picture(drawn), drawn.name, figure)
    elif profile is not None:
        raise InputError(f"--profile {profile} without --figure: expected a file to draw it in; name one")
    here, known = api.machines()
    usable = {name: found for name, found in known.items() if isinstance(found, Profile)}
    contents = {name: f"cannot be used: {found}" for name, found in known.items()}
    contents |= {name: api.contents(found) for name, found in usable.items()}
    bandwidths = {name: found.bandwidths for name, found in usable.items() if found.bandwidths}
    disturbed = {
        name: [f"{what}: {why.sentence()}" for what, why in api.disturbances(found).items()]
        for name, found in usable.items()
    }
    options.warn(f"{name}, {sentence}" for name, own in disturbed.items() for sentence in own)
    document = {
        "machine": documents.machine(here),
        "profiles": contents,
        "bandwidths": {name: documents.bandwidths(own) for name, own in bandwidths.items()},
        "disturbances": disturbed,
    }
    options.show(as_json, document, tables.machines(here, contents, bandwidths))


@group.command("import")
def import_command(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Tables (.csv, .csv.gz), or Ginkgo's JSON, also a folder."),
    ],
    name: Annotated[str, typer.Option(metavar="NAME", help="What to call the profile.")],
    machine: Annotated[
        str | None,
        typer.Option(
            metavar="MACHINE", help="Which machine of the files, if they have several or name none."
        ),
    ] = None,
    as_json: options.JsonOption = False,
) -> None:
    """Turn times that others published into a profile, to forecast for their machine."""
    from sparsecast import api
    from sparsecast.reports import documents, tables

    found, path = api.import_machine(files, name, machine)
    options.show(as_json, documents.imported(found, path), *tables.imported(found, path))
