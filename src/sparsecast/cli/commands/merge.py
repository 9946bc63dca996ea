"""sparsecast merge [FOLDER...] -o FILE.parquet."""

from __future__ import annotations

from typing import Annotated

from sparsecast import api
from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.options import argument, flag, option
from sparsecast.cli.output import Output


@command("merge", Panel.MEASUREMENTS, csv=True)
def merge(
    output: Annotated[str, option("FILE.parquet", "File or address, such as s3://.", "--output", "-o")],
    folders: Annotated[
        list[str] | None,
        argument(
            "[FOLDER|FILE]...",
            "Journals, profiles, merged files, or folders of them; the local data folder by default.",
        ),
    ] = None,
    force: Annotated[bool, flag("--force", "Replace an existing file.")] = False,
) -> Output:
    """Merge the records of many processes and machines into one Parquet file."""
    from sparsecast.results.measurement import DOCUMENTS

    options.refuse_no_parquet("--output", output)
    options.refuse_taken(output, force)
    merged = api.merge(folders or [], output)
    return Output(DOCUMENTS["merge"], merged, [merged.table()], merged.notes)
