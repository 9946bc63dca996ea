"""SELL with sorting windows of every width on synthetic rows: what WINDOWS and PADDING_ABOVE_LEAST rest on.

    python benchmarks/sell_window.py [--rows 60000 300000] [--mean 8] [--dtype float32]

One thread. A ratio is the time of CSR, in the variant its rule chooses, over that of SELL with this window,
alternated in one run; the entries stored for each non-zero stand beside it. `reach` is the share of the
columns around the diagonal that a row draws from: on a narrow one, rows that are neighbours share x. `chosen`
is what the rule of SELL chooses, and a star stands where another window was faster by more than the noise and
a tenth. JAD, which sorts all rows, is measured beside them.
"""

from __future__ import annotations

import argparse
import sys
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
from sparsecast.formats import FORMATS
from sparsecast.formats.sell import SELL
from sparsecast.formats.storage_format import StorageFormat
from sparsecast.machines.machine import detect
from sparsecast.matrices.synthesis import varied_matrix
from sparsecast.measuring.timing import Call, Effort, Timing, measure
from sparsecast.records import DTYPES

KINDS = ("fixed", "mixed", "uniform", "power")
REACHES = (0.0, 0.02, 1.0)
WINDOWS = (1, 256, 1024, 4096, 16384)
ALL = "all"
EFFORT = Effort(samples=9, sample_s=0.004)


def call_of(matrix: StorageFormat, blocks: RowBlocks, reference: ReferenceProduct, x: NDArray[Any]) -> Call:
    """Return the product of a format, in the variant of its rule, after checking its result."""
    kernels = DEVICES.get("cpu").kernels.get(matrix.name)
    product = kernels.bind(
        matrix, kernels.variants[int(kernels.choose(blocks, detect(), matrix.dtype.name)[0])], 1
    )
    out = np.full(matrix.shape[0], np.nan, dtype=matrix.dtype)
    product(x, out)
    reference.check(out, matrix.name)
    return lambda: product(x, out)


def name_of(window: int, rows: int) -> str:
    """Return the column of a window."""
    return str(window) if window < rows else ALL


def timings_of(A: csr_array[Any]) -> tuple[dict[str, Timing], dict[str, float], str]:
    """Return times and stored entries for each non-zero by window, and the window that the rule chooses."""
    rows, blocks = A.shape[0], RowBlocks.of(structure(A))
    x = right_hand_side(A.shape[1], A.dtype.name)
    reference = ReferenceProduct.of(A, x)
    calls = {name: call_of(FORMATS.get(name).from_csr(A), blocks, reference, x) for name in ("csr", "jad")}
    stored = {}
    everything = -(-rows // 8) * 8
    for window in (*WINDOWS, everything):
        matrix = SELL.from_csr(A, sigma=window)
        stored[name_of(window, rows)] = matrix.data.size / max(A.nnz, 1)
        calls[name_of(window, rows)] = call_of(matrix, blocks, reference, x)
    return measure(calls, EFFORT), stored, name_of(SELL.from_csr(A).sigma, rows)


def row_of(A: csr_array[Any]) -> list[str]:
    """Measure one matrix and return the cells of its table row."""
    timings, stored, chosen = timings_of(A)
    # Noise is one-sided: a low quantile of alternated samples is steadier than their median.
    seconds = {name: float(np.quantile(timing.samples_s, 0.2)) for name, timing in timings.items()}
    noise = max(timing.noise for timing in timings.values())
    is_mistaken = seconds[chosen] > min(seconds[name] for name in stored) * (1.1 + noise)
    return [
        f"{seconds['csr'] / A.nnz * 1e9:.2f}",
        *(f"{seconds['csr'] / seconds[name]:.2f} ({share:.2f})" for name, share in stored.items()),
        f"{seconds['csr'] / seconds['jad']:.2f}",
        chosen + (" *" if is_mistaken else ""),
        f"{noise:.0%}",
    ]


def main() -> None:
    """Measure every kind of rows at every size and reach."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[60_000, 300_000])
    parser.add_argument("--mean", type=int, default=8, help="mean entries a row")
    parser.add_argument("--dtype", choices=DTYPES, default="float64")
    arguments = parser.parse_args()
    table = Table(caption="ratios: time of CSR over that of SELL (entries stored for each non-zero)")
    for heading in (
        "rows",
        "lengths",
        "reach",
        "csr ns/nnz",
        *map(str, WINDOWS),
        ALL,
        "jad",
        "chosen",
        "noise",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    for rows in arguments.rows:
        for kind in KINDS:
            for reach in REACHES:
                A = varied_matrix(rows, arguments.mean, kind, reach, seed=1).astype(arguments.dtype)
                table.add_row(str(rows), kind, str(reach), *row_of(A))
        table.add_section()
    Console(width=None if sys.stdout.isatty() else 160).print(table)


if __name__ == "__main__":
    main()
