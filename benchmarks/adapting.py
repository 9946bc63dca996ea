"""Products with an operator that adapts, against plain CSR alone and against the best format alone.

    python benchmarks/adapting.py [--threads N] [--products N] FILE...

It needs a profile of this machine. The products of the three operators are done in turn, some of each, so
that a slow minute slows them all alike. The time of the operator that adapts is that of all its products from
the first on: conversions and trials happen in them. "to compile" is what it takes before. The others are
built before, which does not count; "best built" counts it. Kernels are loaded before.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from time import perf_counter

import numpy as np
from rich.console import Console
from rich.table import Table

import sparsecast as sc
from sparsecast import api
from sparsecast.benchmark.measurement import right_hand_side
from sparsecast.devices import DEVICES
from sparsecast.devices.binding import bind
from sparsecast.errors import InputError
from sparsecast.measuring.timing import Effort, measure
from sparsecast.operators.block_operator import BlockOperator, RowProduct
from sparsecast.planning.adapting import LOADER
from sparsecast.reports.tables import time

#: Products of one operator in a row.
IN_A_TURN = 50

#: What finds the best format.
EFFORT = Effort(samples=20, most_s=0.2)


def totals_s(calls: dict[str, Callable[[], object]], products: int) -> dict[str, float]:
    """Return the seconds of so many products of each, done in turn."""
    used = dict.fromkeys(calls, 0.0)
    for first in range(0, products, IN_A_TURN):
        for name, call in calls.items():
            start = perf_counter()
            for _ in range(min(IN_A_TURN, products - first)):
                call()
            used[name] += perf_counter() - start
    return used


def row(specification: str, threads: int, products: int) -> tuple[list[float], list[str]]:
    """Return the ratios of a matrix, and the row that shows them."""
    found = api.read_matrix(specification)
    A, built, convert_s = found.matrix, {}, {}
    x, out = right_hand_side(A.shape[1], A.dtype.name), np.empty(A.shape[0], dtype=A.dtype)
    for candidate in api.choice(found, threads=threads).candidates:
        LOADER.load(DEVICES.get(candidate.device), candidate)
        bind(A, candidate)  # conversions are loaded too
        start = perf_counter()
        product = bind(A, candidate).product
        convert_s[candidate.format] = perf_counter() - start
        built[candidate.format] = BlockOperator(A.shape, A.dtype, [RowProduct(0, A.shape[0], product)])
    calls = {name: lambda operator=operator: operator.matvec(x, out) for name, operator in built.items()}
    timings = measure(calls, EFFORT)
    best = min(timings, key=lambda name: timings[name].time_s)
    start = perf_counter()
    operator = sc.compile(found, threads=threads, adapt=True)
    compile_s = perf_counter() - start
    asked = {"adapt": lambda: operator.matvec(x, out), "csr": calls["csr"]}
    used = totals_s(asked if best == "csr" else asked | {"best": calls[best]}, products)
    best_s = used.get("best", used["csr"])
    built_s = best_s + (0.0 if best == "csr" else convert_s[best])
    ratios = [used["adapt"] / used["csr"], used["adapt"] / best_s, used["adapt"] / built_s]
    tried = " ".join(f"{t.candidate.format}{'+' if t.is_kept else '-'}" for t in operator.tried)
    shown = [found.name, f"{A.nnz:,}", time(used["csr"] / products), best, tried or "nothing"]
    return ratios, [*shown, *(f"{ratio:.3f}" for ratio in ratios), time(compile_s)]


def summary(ratios: Sequence[Sequence[float]]) -> list[str]:
    """Return for each ratio its geometric mean and its worst."""
    return [f"{np.exp(np.mean(np.log(each))):.3f} ({max(each):.3f})" for each in zip(*ratios, strict=True)]


def main() -> None:
    """Print the table; a + marks what was kept."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("matrices", nargs="+", metavar="FILE")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--products", type=int, default=1000)
    arguments = parser.parse_args()
    table = Table(title=f"Time of {arguments.products:,} products, {arguments.threads} threads")
    headings = ("adapt/csr", "adapt/best", "adapt/best built", "to compile")
    for heading in ("matrix", "non-zeros", "csr", "best", "tried", *headings):
        table.add_column(heading, justify="left" if heading in ("matrix", "best", "tried") else "right")
    ratios = []
    for specification in arguments.matrices:
        try:
            own, shown = row(specification, arguments.threads, arguments.products)
        except InputError as error:
            print(f"{specification}: {error}")
            continue
        ratios.append(own)
        table.add_row(*shown)
    if ratios:
        table.add_row("geometric mean (worst)", "", "", "", "", *summary(ratios))
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
