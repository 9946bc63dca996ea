"""What plans gain: the planned operator against every single format, sampled in turn.

    python benchmarks/plan_gain.py [--iterations N] [--model NAME] MATRIX...

Prints, for each matrix, the plan's blocks and the time of the fastest single format over the plan's.
"""

from __future__ import annotations

import argparse

from rich.console import Console
from rich.table import Table

from sparsecast import api
from sparsecast.benchmark.measurement import right_hand_side
from sparsecast.devices.binding import bind, prepared
from sparsecast.errors import InputError
from sparsecast.measuring.timing import DEFAULT_EFFORT, measure
from sparsecast.reports.tables import time


def row(specification: str, iterations: int, model: str | None) -> tuple[float, list[str]]:
    """Return the gain of a matrix' plan over the best single format, and the row that shows it."""
    found = api.read_matrix(specification)
    plan = api.plan(found.matrix, iterations=iterations, model=model)
    operator = api.compile(found.matrix, plan)
    x = right_hand_side(found.matrix.shape[1], found.matrix.dtype.name)
    out = operator.matvec(x)
    calls = {"plan": lambda: operator.matvec(x, out)}
    for candidate in api.choice(found.matrix).candidates:
        ready = prepared(found.matrix, candidate.dtype, candidate.index_bits)
        product = bind(ready, candidate).product
        product(x, out)
        calls[candidate.format] = lambda product=product: product(x, out)
    timings = measure(calls, DEFAULT_EFFORT)
    planned = timings.pop("plan")
    best = min(timings, key=lambda name: timings[name].time_s)
    gain = timings[best].time_s / planned.time_s - 1
    formats = " ".join(dict.fromkeys(block.candidate.format for block in plan.blocks))
    noise = max(planned.noise, timings[best].noise)
    return gain, [
        found.name,
        f"{found.matrix.nnz:,}",
        str(len(plan.blocks)),
        formats,
        time(plan.time_s),
        time(planned.time_s),
        f"{best} {time(timings[best].time_s)}",
        f"{100 * gain:+.1f} %",
        f"{100 * (timings['csr'].time_s / planned.time_s - 1):+.1f} %",
        f"{100 * noise:.1f} %",
    ]


def main() -> None:
    """Print the table, the largest gain first."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("matrices", nargs="+", metavar="MATRIX")
    parser.add_argument("--iterations", type=int, default=100_000)
    parser.add_argument("--model", default=None)
    arguments = parser.parse_args()
    table = Table(title=f"Plans for {arguments.iterations:,} products")
    headings = ("matrix", "non-zeros", "blocks", "formats", "forecast", "plan", "best single format")
    for heading in (*headings, "gain", "over CSR", "noise"):
        table.add_column(heading, justify="left" if heading in ("matrix", "formats") else "right")
    rows = []
    for specification in arguments.matrices:
        try:
            rows.append(row(specification, arguments.iterations, arguments.model))
        except InputError as error:
            print(error)
    for _, cells in sorted(rows, key=lambda item: -item[0]):
        table.add_row(*cells)
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
