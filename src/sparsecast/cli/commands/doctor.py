"""sparsecast doctor."""

from __future__ import annotations

from sparsecast import api
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.output import Output


@command("doctor", Panel.MACHINES, csv=True)
def doctor() -> Output:
    """Check what affects times and forecasts on this machine, with a remedy for each."""
    from sparsecast.results.machines import DOCUMENTS, FINDING
    from sparsecast.system.tabular import Table

    findings = api.checkup()
    return Output(DOCUMENTS["doctor"], {"findings": findings}, [Table("This machine", FINDING, findings)])
