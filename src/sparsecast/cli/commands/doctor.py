"""sparsecast doctor."""

from __future__ import annotations

from sparsecast.cli import options
from sparsecast.cli.commands import Panel, command


@command("doctor", Panel.MACHINES)
def doctor(as_json: options.JsonOption = False) -> None:
    """Check what affects times and forecasts on this machine, with a remedy for each."""
    from rich.table import Table

    from sparsecast import api

    found = api.checkup()
    document = {"findings": [{"what": f.what, "found": f.found, "remedy": f.remedy or None} for f in found]}
    table = Table(title="This machine", title_justify="left")
    table.add_column("looked at")
    table.add_column("found", overflow="fold")
    table.add_column("to do", overflow="fold")
    for each in found:
        table.add_row(each.what, each.found, each.remedy or "nothing")
    options.show(as_json, document, table)
