"""The three CSR row loops on synthetic rows: what MISPREDICTED_SHARE and SHORT_ROW rest on.

    python benchmarks/csr_row_loops.py [--dtype float32] [--nnz 400000]

One thread; columns lie in a band, so that x comes from the nearest cache and only the rows differ. A ratio is
the time over that of ``unrolled``, alternated in one run. `mispredicted` is the share of rows whose end
is mispredicted; `chosen` is what the rule in the CSR kernels chooses, and a star stands
where another loop was faster by more than the noise and a twentieth.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.sparse import csr_array

from sparsecast.benchmark.measurement import right_hand_side
from sparsecast.devices import DEVICES
from sparsecast.devices.reference import ReferenceProduct
from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats.csr import CSR
from sparsecast.machines.machine import detect
from sparsecast.measuring.timing import Call, Effort, Timing, measure
from sparsecast.records import DTYPES

MEANS = (2, 3, 8, 20, 40)
BAND = 256
BASE = "unrolled"
EFFORT = Effort(samples=9, sample_s=0.004)

Lengths = NDArray[np.int64]
Draw = Callable[[np.random.Generator, int, int], Lengths]


def constant(generator: np.random.Generator, rows: int, mean: int) -> Lengths:
    """Rows of one length."""
    return np.full(rows, mean)


def alternating(generator: np.random.Generator, rows: int, mean: int) -> Lengths:
    """Half and one and a half times the mean in turn."""
    half = max(mean // 2, 1)
    return np.where(np.arange(rows) % 2 == 0, mean - half, mean + half)


def mixed(share: float) -> Draw:
    """Rows of one length, a share of which, here and there, has another one."""

    def draw(generator: np.random.Generator, rows: int, mean: int) -> Lengths:
        others = generator.random(rows) < share
        return np.where(others, generator.integers(0, 2 * mean + 1, rows), mean)

    return draw


def plus_minus_one(generator: np.random.Generator, rows: int, mean: int) -> Lengths:
    """Lengths of the mean, one less or one more."""
    return mean + generator.integers(-1, 2, rows)


def uniform(generator: np.random.Generator, rows: int, mean: int) -> Lengths:
    """Anything up to twice the mean."""
    return generator.integers(0, 2 * mean + 1, rows)


def geometric(generator: np.random.Generator, rows: int, mean: int) -> Lengths:
    """Many short rows and a few long ones."""
    return np.minimum(generator.geometric(1.0 / (mean + 1), rows) - 1, BAND)


KINDS: dict[str, Draw] = {
    "constant": constant,
    "alternating": alternating,
    **{f"mixed {share}": mixed(share) for share in (0.1, 0.2, 0.35, 0.5)},
    "plus or minus 1": plus_minus_one,
    "uniform": uniform,
    "geometric": geometric,
}


def matrix_of(lengths: Lengths, dtype: str) -> csr_array[Any]:
    """Return a matrix with these row lengths whose columns follow one another within a band."""
    rows = len(lengths)
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    within = np.arange(indptr[-1]) - np.repeat(indptr[:-1], lengths)
    first = np.arange(rows) % BAND
    indices = (np.repeat(first, lengths) + within).astype(np.int32)
    data = np.random.default_rng(1).uniform(-1.0, 1.0, indptr[-1]).astype(dtype)
    return csr_array((data, indices, indptr), shape=(rows, 2 * BAND))


def call_of(A: csr_array[Any], variant: str, x: NDArray[Any]) -> Call:
    """Return the product of one row loop as a callable, after checking its result."""
    product = DEVICES.get("cpu").kernels.get("csr").bind(CSR.from_csr(A), variant, 1)
    out = np.full(A.shape[0], np.nan, dtype=A.dtype)
    product(x, out)
    ReferenceProduct.of(A, x).check(out, f"csr {variant}")
    return lambda: product(x, out)


def row_of(kind: str, mean: int, A: csr_array[Any]) -> list[str]:
    """Measure the row loops on one matrix and return the table's cells."""
    kernels, found = DEVICES.get("cpu").kernels.get("csr"), structure(A)
    x = right_hand_side(A.shape[1], A.dtype.name)
    timings = measure(
        {variant: call_of(A, variant, x) for variant in kernels.variants_of(A.dtype.name)}, EFFORT
    )
    chosen = kernels.variants[int(kernels.choose(RowBlocks.of(found), detect(), A.dtype.name)[0])]
    base = timings[BASE].time_s
    noise = max(timing.noise for timing in timings.values())
    return [
        kind,
        str(mean),
        f"{found.row_lengths.mispredicted / found.rows:.2f}",
        f"{base / A.nnz * 1e9:.2f}",
        *(f"{timings[variant].time_s / base:.2f}" for variant in kernels.variants if variant != BASE),
        chosen + (" *" if is_mistaken(timings, chosen, noise) else ""),
        f"{noise:.1%}",
    ]


def is_mistaken(timings: dict[str, Timing], chosen: str, noise: float) -> bool:
    """Tell whether another loop was clearly faster than the chosen one."""
    best = min(timing.time_s for timing in timings.values())
    return timings[chosen].time_s > best * (1.05 + noise)


def main() -> None:
    """Measure every kind of rows at every mean length."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dtype", choices=DTYPES, default="float64")
    parser.add_argument("--nnz", type=int, default=400_000, help="entries of each matrix, about")
    arguments = parser.parse_args()
    variants = DEVICES.get("cpu").kernels.get("csr").variants_of(arguments.dtype)
    others = [variant for variant in variants if variant != BASE]
    table = Table(caption=f"ratios: time over that of '{BASE}'")
    table.add_column("row lengths", no_wrap=True)
    for heading in ("mean", "mispredicted", f"{BASE} ns/nnz", *others):
        table.add_column(heading, justify="right")
    table.add_column("chosen", no_wrap=True)
    table.add_column("noise", justify="right")
    for mean in MEANS:
        for kind, draw in KINDS.items():
            lengths = draw(np.random.default_rng(0), max(arguments.nnz // mean, 1), mean)
            table.add_row(*row_of(kind, mean, matrix_of(lengths, arguments.dtype)))
        table.add_section()
    Console(width=None if sys.stdout.isatty() else 110).print(table)


if __name__ == "__main__":
    main()
