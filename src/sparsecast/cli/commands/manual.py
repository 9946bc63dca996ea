"""sparsecast manual."""

from __future__ import annotations

import typer

from sparsecast.cli.commands import Panel, command
from sparsecast.cli.output import Output


@command("manual", Panel.SHELL)
def manual(context: typer.Context) -> Output:
    """Print the manual page, for man: sparsecast manual | man -l -."""
    from sparsecast.cli.manual import manual
    from sparsecast.system.tabular import keys

    page = manual(context.find_root())
    return Output(keys("manual"), {"manual": page}, [page.rstrip()])
