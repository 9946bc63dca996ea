"""Draws charts as SVG in a process of its own, which gets ready while the forecasts are made.

The library begins slowly, and holds the interpreter's lock all the time, so that a thread would not help.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sparsecast.errors import SparsecastError

if TYPE_CHECKING:
    from sparsecast.reports.pages.charts import Chart

#: Returns a chart as SVG.
Draw = Callable[["Chart"], str]

#: The process: a line of JSON for each chart in, one out. It outlives an interrupt, which its caller answers.
_PROGRAM = """
import json, signal, sys
import vl_convert
signal.signal(signal.SIGINT, signal.SIG_IGN)
vl_convert.vegalite_to_svg({"data": {"values": [{}]}, "mark": "point"})
for line in sys.stdin:
    print(json.dumps(vl_convert.vegalite_to_svg(json.loads(line))), flush=True)
"""


@contextmanager
def drawing() -> Iterator[Draw]:
    """Start the process, and give the function that has it draw a chart.

    It raises a SparsecastError if the process has ended.
    """
    command = [sys.executable, "-c", _PROGRAM]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "encoding": "utf-8"}
    with subprocess.Popen(command, **pipes) as process:

        def draw(chart: Chart) -> str:
            print(json.dumps(chart.spec), file=process.stdin, flush=True)
            line = process.stdout.readline() if process.stdout else ""
            if not line:
                raise SparsecastError(
                    f"chart {chart.name}: expected the process that draws it to go on; it ended, see above"
                )
            return str(json.loads(line))

        try:
            yield draw
        except BaseException:
            process.kill()  # it may still be beginning, which nobody waits for any more
            raise


def drawn(chart: Chart) -> str:
    """Return a chart as SVG, for readers without JavaScript and for paper; drawn in this process."""
    import vl_convert

    return str(vl_convert.vegalite_to_svg(chart.spec))
