"""The two row loops of symmetric CSR against CSR, on mirrored matrices: what SHORT_ROW rests on.

    python benchmarks/symmetric_rows.py [--nnz 400000]

One thread, float64. A ratio is the time over that of CSR with the row loop that its rule chooses, sampled in
turn; `chosen` is what the rule of symmetric CSR chooses, and a star stands where the other loop was faster
by more than the noise and a twentieth.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.sparse import csr_array

from sparsecast.devices import DEVICES
from sparsecast.devices.reference import ReferenceProduct
from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats import FORMATS
from sparsecast.machines.machine import detect
from sparsecast.matrices.synthesis import mirrored, varied_matrix
from sparsecast.measuring.timing import Call, Effort, measure

MEANS = (3, 5, 7, 9, 12, 15, 20, 30, 60, 120)
KINDS = (("fixed", 0.0), ("fixed", 1.0), ("mixed", 0.01), ("power", 0.1))
EFFORT = Effort(samples=9, sample_s=0.004)


def call_of(A: csr_array, name: str, variant: str) -> Call:
    """Return the product of one row loop as a callable, after checking its result."""
    product = DEVICES.get("cpu").kernels.get(name).bind(FORMATS.get(name).from_csr(A), variant, 1)
    x, out = np.random.default_rng(2).uniform(-1.0, 1.0, A.shape[1]), np.full(A.shape[0], np.nan)
    product(x, out)
    ReferenceProduct.of(A, x).check(out, f"{name} {variant}")
    return lambda: product(x, out)


def chosen(name: str, A: csr_array) -> str:
    """Return the variant that the rule of a format chooses."""
    kernels = DEVICES.get("cpu").kernels.get(name)
    return kernels.variants[int(kernels.choose(RowBlocks.of(structure(A)), detect(), A.dtype.name)[0])]


def row_of(kind: str, reach: float, mean: int, nnz: int) -> list[str]:
    """Measure one matrix and return the table's cells."""
    A = mirrored(varied_matrix(nnz // mean, mean, kind, reach, seed=0))
    variants, rule = DEVICES.get("cpu").kernels.get("symmetric_csr").variants, chosen("symmetric_csr", A)
    calls = {variant: call_of(A, "symmetric_csr", variant) for variant in variants}
    found = measure({"csr": call_of(A, "csr", chosen("csr", A)), **calls}, EFFORT)
    noise = max(timing.noise for timing in found.values())
    best = min(found[variant].time_s for variant in variants)
    return [
        kind,
        f"{reach:g}",
        f"{A.nnz / A.shape[0]:.1f}",
        f"{1e9 * found['csr'].time_s / A.nnz:.2f}",
        *(f"{found[variant].time_s / found['csr'].time_s:.2f}" for variant in variants),
        rule + (" *" if found[rule].time_s > best * (1.05 + noise) else ""),
        f"{noise:.1%}",
    ]


def main() -> None:
    """Measure every kind of rows at every mean length."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nnz", type=int, default=400_000, help="entries of each matrix, about")
    arguments = parser.parse_args()
    table = Table(caption="ratios: time over that of CSR")
    table.add_column("row lengths")
    for heading in ("reach", "mean", "CSR ns/nnz", *DEVICES.get("cpu").kernels.get("symmetric_csr").variants):
        table.add_column(heading, justify="right")
    table.add_column("chosen")
    table.add_column("noise", justify="right")
    for mean in MEANS:
        for kind, reach in KINDS:
            table.add_row(*row_of(kind, reach, mean, arguments.nnz))
        table.add_section()
    Console(width=None if sys.stdout.isatty() else 110).print(table)


if __name__ == "__main__":
    main()
