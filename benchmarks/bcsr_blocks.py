"""BCSR against CSR for every block size: what its rule of bytes rests on.

    python benchmarks/bcsr_blocks.py [--dtype float32] [--threads 2] [--matrix elasticity3d?n=20]

Without a matrix, each size is measured on random blocks of that size, all of them full; with one, every
size is measured on that matrix. `speed-up` is the time of CSR over that of BCSR, alternated in one run;
`bytes` is what CSR streams over what BCSR streams, which the speed-up should follow where the matrix
exceeds the nearest caches; `convert` is in products of CSR; `compile` is the seconds of the first
product, in a process that finds its kernels on disk or has to compile them.
"""

from __future__ import annotations

import argparse
import sys
from time import perf_counter
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.sparse import csr_array

from sparsecast.benchmark.measurement import right_hand_side
from sparsecast.devices import DEVICES
from sparsecast.devices.reference import ReferenceProduct
from sparsecast.errors import PaddingError
from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats.bcsr import BCSR, BLOCK_SIDES
from sparsecast.formats.csr import CSR
from sparsecast.machines.machine import detect
from sparsecast.matrices.gallery import gallery_from_specification
from sparsecast.measuring.timing import Call, Effort, measure
from sparsecast.records import DTYPES, product_flops

SIZES = [(r, c) for r in BLOCK_SIDES for c in BLOCK_SIDES]
ENTRIES_PER_ROW = 24
EFFORT = Effort(samples=7, sample_s=0.006)


def block_matrix(rows: int, r: int, c: int, dtype: str) -> csr_array[Any]:
    """Return a matrix of full r x c blocks in random places near its diagonal, 24 entries a row."""
    generator = np.random.default_rng(0)
    block_rows, blocks = rows // r, ENTRIES_PER_ROW // c
    block_cols = rows // c
    reach = min(block_cols, 64 * blocks)
    first = np.clip(np.arange(block_rows) * r // c - reach // 2, 0, block_cols - reach)
    # One of each equal share of the reach: distinct and ascending.
    share = reach // blocks
    places = first[:, None] + np.arange(blocks) * share + generator.integers(0, share, (block_rows, blocks))
    columns = (places[:, :, None] * c + np.arange(c)).reshape(block_rows, -1)
    indices = np.repeat(columns, r, axis=0).astype(np.int32).ravel()
    indptr = np.arange(0, len(indices) + 1, blocks * c, dtype=np.int32)
    data = generator.uniform(-1.0, 1.0, len(indices)).astype(dtype)
    return csr_array((data, indices, indptr), shape=(block_rows * r, block_cols * c))


def product_of(A: csr_array[Any], block: tuple[int, int] | None, threads: int) -> tuple[Call, float]:
    """Return a product with A, of CSR without a block, checked; and the seconds of its first call."""
    name = "bcsr" if block else "csr"
    kernels = DEVICES.get("cpu").kernels.get(name)
    matrix = BCSR.from_csr(A, block) if block else CSR.from_csr(A)
    chosen = 0 if block else int(kernels.choose(RowBlocks.of(structure(A)), detect(), A.dtype.name)[0])
    product = kernels.bind(matrix, kernels.variants[chosen], threads)
    x = right_hand_side(A.shape[1], A.dtype.name)
    out = np.full(A.shape[0], np.nan, dtype=A.dtype)
    start = perf_counter()
    product(x, out)
    first_call_s = perf_counter() - start
    ReferenceProduct.of(A, x).check(out, f"{name} {block}")
    return lambda: product(x, out), first_call_s


def row_of(A: csr_array[Any], block: tuple[int, int], threads: int) -> list[str]:
    """Measure one size on one matrix and return the table's cells."""
    size = f"{block[0]} x {block[1]}"
    try:
        built = BCSR.from_csr(A, block)
    except PaddingError:
        return [size, "refused"]
    start = perf_counter()
    BCSR.from_csr(A, block)
    convert_s = perf_counter() - start
    (plain, _), (blocked, first_call_s) = product_of(A, None, threads), product_of(A, block, threads)
    timings = measure({"csr": plain, "bcsr": blocked}, EFFORT)
    csr_s, bcsr_s = timings["csr"].time_s, timings["bcsr"].time_s
    gflop = product_flops(A.nnz, A.dtype.name) / 1e9
    return [
        size,
        f"{built.data.size / A.nnz:.2f}",
        f"{gflop / csr_s:.2f}",
        f"{gflop / bcsr_s:.2f}",
        f"{csr_s / bcsr_s:.2f}",
        f"{CSR.from_csr(A).traffic() / built.traffic():.2f}",
        f"{convert_s / csr_s:.1f}",
        f"{first_call_s:.2f}",
        f"{max(timing.noise for timing in timings.values()):.1%}",
    ]


def main() -> None:
    """Measure every block size."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dtype", choices=DTYPES, default="float64")
    parser.add_argument("--rows", type=int, default=40_000, help="rows of the random matrices, about")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--matrix", help="one of the gallery, such as elasticity3d?n=20")
    arguments = parser.parse_args()
    table = Table(caption="speed-up: time of CSR over that of BCSR; GFLOP/s of non-zeros, without padding")
    for heading in ("size", "fill", "CSR", "BCSR", "speed-up", "bytes", "convert", "compile", "noise"):
        table.add_column(heading, justify="right")
    given = arguments.matrix and gallery_from_specification(arguments.matrix).astype(arguments.dtype)
    for r, c in SIZES:
        A = block_matrix(arguments.rows, r, c, arguments.dtype) if given is None else given
        table.add_row(*row_of(A, (r, c), arguments.threads), end_section=c == BLOCK_SIDES[-1])
    Console(width=None if sys.stdout.isatty() else 110).print(table)


if __name__ == "__main__":
    main()
