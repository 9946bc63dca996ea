"""sparsecast manual."""

from __future__ import annotations

import json

import typer

from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command


@command("manual", Panel.SHELL)
def manual(context: typer.Context, as_json: options.JsonOption = False) -> None:
    """Print the manual page, for man: sparsecast manual | man -l -."""
    from sparsecast.cli.manual import manual

    page = manual(context.find_root())
    print(json.dumps({"manual": page}) if as_json else page, end="\n" if as_json else "")
