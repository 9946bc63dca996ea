"""sparsecast merge [FOLDER...] -o FILE.parquet."""

from __future__ import annotations

from typing import Annotated

import typer

from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.output import Output


@command("merge", Panel.MEASUREMENTS, csv=True)
def merge(
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="FILE.parquet", help="File or address, such as s3://."),
    ],
    folders: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FOLDER|FILE]...",
            help="Journals, profiles, merged files, or folders of them; the local data folder by default.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> Output:
    """Merge the records of many processes and machines into one Parquet file."""
    from sparsecast import api
    from sparsecast.results.measurement import DOCUMENTS

    options.refuse_no_parquet("--output", output)
    options.refuse_taken(output, force)
    merged = api.merge(folders or [], output)
    return Output(DOCUMENTS["merge"], merged, [merged.table()], merged.notes)
