"""sparsecast compare-results A B."""

from __future__ import annotations

import re
from typing import Annotated

from sparsecast import api
from sparsecast.cli.commands import Panel, command
from sparsecast.cli.options import OUR_FAULT, argument, option
from sparsecast.cli.output import Output
from sparsecast.errors import InputError


def _share(text: str | None) -> float | None:
    """Return a percentage as a share."""
    if text is None:
        return None
    if number := re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", text.strip()):
        return float(number[1]) / 100
    raise InputError(f"--fail-above {text}: expected a percentage, such as 5%; correct it")


@command("compare-results", Panel.MEASUREMENTS, csv=True)
def compare_results(
    a: Annotated[str, argument("A", "Folder, journal, profile or merged file.")],
    b: Annotated[str, argument("B", "The same from another day, version or machine.")],
    fail_above: Annotated[
        str | None,
        option(
            "PERCENT",
            "Exit with status 1 if B is certainly slower by more than this, such as 5%.",
            callback=_share,
        ),
    ] = None,
) -> Output:
    """Compare two sets of records: which times differ by more than the noise.

    The sets may be from two days, versions or machines.
    """
    from sparsecast.results.differences import DOCUMENTS

    found, notes = api.compare_results(a, b)
    failed = "" if fail_above is None else found.failure(float(fail_above))
    shown = [*found.differing(), found.means(), *found.sentences()]
    notes += [failed] if failed else []
    status = OUR_FAULT if failed else 0
    return Output(DOCUMENTS["compare-results"], found, shown, notes, status=status, all_rows=found.table())
