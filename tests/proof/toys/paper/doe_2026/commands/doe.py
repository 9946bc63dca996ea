"""sparsecast doe."""

from __future__ import annotations

from typing import Annotated

import typer

from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command


@command("doe", Panel.MACHINES)
def doe(
    profile: Annotated[str, typer.Argument(help="Of a machine.")], as_json: options.JsonOption = False
) -> None:
    """Show what a row costs on a machine (Doe 2026)."""
    from doe_2026.row_cost import row_cost
    from sparsecast import api

    seconds = row_cost(api.profile(profile))
    options.show(as_json, {"row_s": seconds}, f"A row takes {1e9 * seconds:.2f} ns.")
