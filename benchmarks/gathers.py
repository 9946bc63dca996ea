"""Gathers against single reads of x on the processor at hand: what `gathers.py` of the kernels rests on.

    python benchmarks/gathers.py

One thread. A ratio is the time with single reads over that with gathers, sampled in turn, for CSR (`unrolled`
over `gathered`) and SELL (`chunks` over `gathered`): above 1 gathers win. Where they win from 8 entries a row
on in CSR and everywhere in SELL, the processor belongs to those that use them.
"""

from __future__ import annotations

import llvmlite.binding
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.sparse import csr_array

from sparsecast.devices import DEVICES
from sparsecast.devices.cpu.gathers import gathers_win
from sparsecast.devices.reference import ReferenceProduct
from sparsecast.formats import FORMATS
from sparsecast.machines.machine import detect
from sparsecast.matrices.synthesis import varied_matrix
from sparsecast.measuring.timing import Call, Effort, measure

#: Rows, mean row length and reach of the columns: from cache to memory, near and far columns.
SHAPES = (
    (100_000, 4, 0.0),
    (50_000, 8, 0.0),
    (30_000, 14, 0.1),
    (20_000, 20, 1.0),
    (8_000, 50, 0.0),
    (2_000, 200, 1.0),
    (200_000, 20, 0.01),
    (300_000, 12, 1.0),
)
PAIRS = {"csr": ("unrolled", "gathered"), "sell": ("chunks", "gathered")}
EFFORT = Effort(samples=9, sample_s=0.005)


def call_of(A: csr_array, name: str, variant: str) -> Call:
    """Return a product as a callable, after checking its result."""
    product = DEVICES.get("cpu").kernels.get(name).bind(FORMATS.get(name).from_csr(A), variant, 1)
    x = np.random.default_rng(2).uniform(-1.0, 1.0, A.shape[1]).astype(A.dtype)
    out = np.full(A.shape[0], np.nan, dtype=A.dtype)
    product(x, out)
    ReferenceProduct.of(A, x).check(out, f"{name} {variant}")
    return lambda: product(x, out)


def cells(A: csr_array) -> list[str]:
    """Measure one matrix; return the ratios of the formats and the noise."""
    calls = {(name, each): call_of(A, name, each) for name, pair in PAIRS.items() for each in pair}
    found = measure({" ".join(key): call for key, call in calls.items()}, EFFORT)
    ratios = [
        found[f"{name} {one}"].time_s / found[f"{name} {two}"].time_s for name, (one, two) in PAIRS.items()
    ]
    return [*(f"{ratio:.2f}" for ratio in ratios), f"{max(t.noise for t in found.values()):.1%}"]


def main() -> None:
    """Measure every shape in both types."""
    features = llvmlite.binding.get_host_cpu_features()
    print(
        f"processor {llvmlite.binding.get_host_cpu_name()}, AVX-512 FP16 {features.get('avx512fp16', False)}"
    )
    print(f"gathers are {'' if gathers_win(detect()) else 'not '}used here")
    table = Table(caption="time with single reads of x over that with gathers")
    for heading in ("rows", "mean", "reach"):
        table.add_column(heading, justify="right")
    for dtype in ("float64", "float32"):
        for heading in (*PAIRS, "noise"):
            table.add_column(f"{heading.upper() if heading in PAIRS else heading} {dtype}", justify="right")
    for rows, mean, reach in SHAPES:
        A = varied_matrix(rows, mean, "mixed", reach, seed=0)
        both = [cell for dtype in ("float64", "float32") for cell in cells(A.astype(dtype))]
        table.add_row(f"{rows:,}", str(mean), f"{reach:g}", *both)
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
