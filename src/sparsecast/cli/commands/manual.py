"""sparsecast manual."""

from __future__ import annotations

import typer

from sparsecast.cli.commands import Panel, command
from sparsecast.cli.output import Output
from sparsecast.system.tabular import keys

#: The documents of commands, by how they are called.
DOCUMENTS = {"manual": keys("manual")}


@command("manual", Panel.SHELL)
def manual(context: typer.Context) -> Output:
    """Print the manual page, for man: sparsecast manual | man -l -."""
    from sparsecast.cli.manual import manual

    page = manual(context.find_root())
    return Output(DOCUMENTS["manual"], {"manual": page}, [page.rstrip()])
