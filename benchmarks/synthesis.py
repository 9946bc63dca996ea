"""How fast synthetic matrices are made: million non-zeros a second on one core.

    python benchmarks/synthesis.py [--rows N] [--density D]

Every kind is made in turn, several times; the best and the median are shown. The time is that of the whole
call, with the memory of the new arrays.
"""

from __future__ import annotations

import argparse
from functools import partial
from time import perf_counter

import numpy as np
from rich.console import Console
from rich.table import Table

from sparsecast.matrices.banded_synthesis import SPREADS, banded_matrix

ROUNDS = 5
BLOCKS = ((1, 1), (1, 4), (2, 2), (3, 2), (8, 8))


def main() -> None:
    """Time every kind."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=2**18)
    parser.add_argument("--density", type=float, default=29.0)
    arguments = parser.parse_args()
    make = partial(banded_matrix, arguments.rows, arguments.density)
    kinds = {
        **{f"{r} x {c} blocks": partial(make, block=(r, c)) for r, c in BLOCKS},
        **{f"{name} lengths": partial(make, lengths=name) for name in SPREADS if name != "fixed"},
        **{f"symmetric, {r} x {c}": partial(make, block=(r, c), symmetric=True) for r, c in BLOCKS if r == c},
    }
    for kind in kinds.values():
        kind(seed=0)
    speeds: dict[str, list[float]] = {name: [] for name in kinds}
    for seed in range(ROUNDS):
        for name, kind in kinds.items():
            start = perf_counter()
            nnz = kind(seed=seed).nnz
            speeds[name].append(nnz / (perf_counter() - start) / 1e6)
    table = Table(
        "matrix", title=f"{arguments.rows:,} rows, {arguments.density:g} entries each, M non-zeros/s"
    )
    for heading in ("median", "best"):
        table.add_column(heading, justify="right")
    for name, found in speeds.items():
        table.add_row(name, f"{np.median(found):.0f}", f"{max(found):.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
