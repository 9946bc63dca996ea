"""DIA in chunks of every size against CSR: what CHUNK_BYTES rests on.

    python benchmarks/dia_chunks.py [--dtype float32] [--threads 2] [MATRIX...]

Without a matrix, stencils of 5, 7 and 27 points and a dense band, each once within a second-level cache and
once beyond it. A ratio is the time of CSR over that of DIA with chunks of so many rows, alternated in one
run; a star marks the chunk that the rule takes. `bytes` is what CSR streams over what DIA streams, which
the ratio should follow where the matrix is beyond the caches. `stream` is the bytes that DIA streams a
second, with the chunk of the rule, over those of a plain sum of as many numbers. Times depend on where an
array lies in memory: each is measured in several copies, and the median counts.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import sys
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.sparse import csr_array

from sparsecast import api
from sparsecast.devices import DEVICES
from sparsecast.devices.reference import ReferenceProduct
from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats.csr import CSR
from sparsecast.formats.dia import CHUNKS, DIA
from sparsecast.formats.storage_format import StorageFormat
from sparsecast.machines.machine import detect
from sparsecast.measuring.timing import Call, Effort, measure

MATRICES = (
    "gallery:poisson2d?n=150",
    "gallery:poisson3d?n=24",
    "gallery:poisson3d?n=16&points=27",
    "gallery:banded?n=6000",
    "gallery:poisson2d?n=1000",
    "gallery:poisson3d?n=100",
    "gallery:poisson3d?n=64&points=27",
    "gallery:banded?n=400000",
)
COPIES = 3
EFFORT = Effort(samples=7, sample_s=0.006)


@numba.njit(parallel=True, fastmath=True)
def stream_sum(values: NDArray[Any]) -> float:
    """Return the sum of an array: how fast memory can be read."""
    total = values.dtype.type(0)
    for i in numba.prange(len(values)):
        total += values[i]
    return total


def call_of(matrix: StorageFormat, blocks: RowBlocks, reference: ReferenceProduct, threads: int) -> Call:
    """Return the product of a format, in the variant of its rule, after checking its result."""
    kernels = DEVICES.get("cpu").kernels.get(matrix.name)
    product = kernels.bind(
        matrix, kernels.variants[int(kernels.choose(blocks, detect(), matrix.dtype.name)[0])], threads
    )
    x, out = right_hand_side(matrix), np.full(matrix.shape[0], np.nan, dtype=matrix.dtype)
    product(x, out)
    reference.check(out, matrix.name)
    return lambda: product(x, out)


def right_hand_side(matrix: StorageFormat) -> NDArray[Any]:
    """Return the same x for every format."""
    return np.random.default_rng(2).uniform(-1.0, 1.0, matrix.shape[1]).astype(matrix.dtype)


def calls_of(A: csr_array[Any], threads: int) -> dict[str, Call]:
    """Return the products with CSR and with every chunk, and the sum of a stream, in several copies."""
    blocks, plain = RowBlocks.of(structure(A)), CSR.from_csr(A)
    reference = ReferenceProduct.of(A, right_hand_side(plain))
    calls = {}
    for copy in range(COPIES):
        again = dataclasses.replace(plain, data=plain.data.copy(), indices=plain.indices.copy())
        calls[f"csr {copy}"] = call_of(again, blocks, reference, threads)
        for chunk_rows in CHUNKS:
            matrix = DIA.from_csr(A, chunk_rows)
            calls[f"{chunk_rows} {copy}"] = call_of(matrix, blocks, reference, threads)
        stream = np.ones(len(matrix.data), dtype=A.dtype)
        calls[f"stream {copy}"] = lambda stream=stream: stream_sum(stream)
    return calls


def row_of(specification: str, A: csr_array[Any], threads: int) -> list[str]:
    """Measure one matrix and return the cells of its table row."""
    chosen, plain = DIA.from_csr(A), CSR.from_csr(A)
    timings = measure(calls_of(A, threads), EFFORT)
    seconds: dict[str, list[float]] = {}
    for name, timing in timings.items():
        seconds.setdefault(name.split()[0], []).append(timing.time_s)
    median = {name: statistics.median(times) for name, times in seconds.items()}
    stream_rate = chosen.data.nbytes / median["stream"]
    return [
        specification.removeprefix("gallery:"),
        f"{chosen.data.nbytes / 1e6:.1f}",
        f"{median['csr'] / A.nnz * 1e9:.2f}",
        *(
            f"{median['csr'] / median[str(rows)]:.2f}{'*' if rows == chosen.chunk_rows else ''}"
            for rows in CHUNKS
        ),
        f"{plain.traffic() / chosen.traffic():.2f}",
        f"{chosen.traffic() / median[str(chosen.chunk_rows)] / stream_rate:.2f}",
        f"{statistics.median(timing.noise for timing in timings.values()):.0%}",
    ]


def main() -> None:
    """Measure every chunk on every matrix."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("matrices", nargs="*", default=MATRICES, metavar="MATRIX")
    parser.add_argument("--dtype", choices=("float64", "float32"), default="float64")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    numba.set_num_threads(arguments.threads)
    table = Table(caption="ratios: time of CSR over that of DIA with chunks of so many rows")
    for heading in ("matrix", "MB", "csr ns/nnz", *map(str, CHUNKS), "bytes", "stream", "noise"):
        table.add_column(heading, justify="left" if heading == "matrix" else "right", no_wrap=True)
    for specification in arguments.matrices:
        A = api.read_matrix(specification).matrix.astype(arguments.dtype)
        table.add_row(*row_of(specification, A, arguments.threads))
    Console(width=None if sys.stdout.isatty() else 110).print(table)


if __name__ == "__main__":
    main()
