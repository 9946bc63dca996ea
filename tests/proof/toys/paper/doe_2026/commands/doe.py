"""sparsecast doe."""

from __future__ import annotations

from typing import Annotated

import typer

from sparsecast.cli.commands import Panel, command
from sparsecast.cli.output import Output
from sparsecast.system.tabular import Column

#: The documents of commands, by how they are called.
DOCUMENTS = {"doe": (Column("row_s", about="of one product"),)}


@command("doe", Panel.MACHINES)
def doe(profile: Annotated[str, typer.Argument(help="Of a machine.")]) -> Output:
    """Show what a row costs on a machine (Doe 2026)."""
    from doe_2026.row_cost import row_cost
    from sparsecast import api

    seconds = row_cost(api.profile(profile))
    return Output(DOCUMENTS["doe"], {"row_s": seconds}, [f"A row takes {1e9 * seconds:.2f} ns."])
