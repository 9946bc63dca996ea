"""sparsecast machines, machines import FILE --name NAME, machines new NAME --like PROFILE."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sparsecast.cli import options
from sparsecast.cli.commands import COMMANDS, Command, Panel
from sparsecast.errors import InputError

group = typer.Typer(invoke_without_command=True, add_completion=False)
COMMANDS.register("machines")(Command(group, Panel.MACHINES))


@group.callback()
def command(
    context: typer.Context,
    profile: Annotated[
        str | None, typer.Option(metavar="NAME|PATH", help="Draw this one; this machine's by default.")
    ] = None,
    figure: options.FigureOption = None,
    as_json: options.JsonOption = False,
) -> None:
    """Describe this machine and list profiles, import published results, or estimate a machine."""
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
    origins = {name: origin for name, found in usable.items() if (origin := api.origin(found))}
    bandwidths = {name: found.bandwidths for name, found in usable.items() if found.bandwidths}
    disturbed = {
        name: [f"{what}: {why.sentence()}" for what, why in api.disturbances(found).items()]
        for name, found in usable.items()
    }
    options.warn(f"{name}, {sentence}" for name, own in disturbed.items() for sentence in own)
    document = {
        "machine": documents.machine(here),
        "profiles": contents,
        "origins": origins,
        "bandwidths": {name: documents.bandwidths(own) for name, own in bandwidths.items()},
        "disturbances": disturbed,
    }
    options.show(as_json, document, tables.machines(here, contents, bandwidths, origins))


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
    """Make a profile from published results, to forecast for their machine."""
    from sparsecast import api
    from sparsecast.reports import documents, tables

    found, path = api.import_machine(files, name, machine)
    options.show(as_json, documents.imported(found, path), *tables.imported(found, path))


@group.command("new")
def new_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What to call the machine.")],
    like: Annotated[
        str, typer.Option(metavar="NAME|PATH", help="A published machine of its kind that was measured.")
    ],
    bandwidth: Annotated[
        str | None, typer.Option(metavar="B/s", help="Peak of its memory, such as 400e9 or 400GB/s.")
    ] = None,
    cores: Annotated[
        int | None, typer.Option(min=1, help="Cores; multiprocessors, or compute units, of a GPU.")
    ] = None,
    frequency: Annotated[
        str | None, typer.Option(metavar="Hz", help="Base frequency, such as 2.4GHz; highest clock of a GPU.")
    ] = None,
    l2: Annotated[
        str | None, typer.Option(metavar="B", help="L2 of one core, such as 1MiB; of all of a GPU.")
    ] = None,
    l3: Annotated[str | None, typer.Option(metavar="B", help="L3 of all cores, such as 256MiB.")] = None,
    memory: Annotated[str | None, typer.Option(metavar="B", help="Memory, such as 80GiB.")] = None,
    as_json: options.JsonOption = False,
) -> None:
    """Estimate an unmeasured machine from its data sheet; missing figures are those of --like."""
    from sparsecast import api
    from sparsecast.reports import documents, tables

    told = {"bandwidth": bandwidth, "frequency": frequency, "l2": l2, "l3": l3, "memory": memory}
    found, path = api.new_machine(name, like, api.told_figures(told, cores))
    options.show(as_json, documents.made(found, path), *tables.made(found, path))
