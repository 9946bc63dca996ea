"""Our CSR product against SciPy's, alternated in one run.

    python benchmarks/csr_against_scipy.py [--json] [MATRIX ...]

MATRIX is a file, or a gallery specification such as ``gallery:poisson3d?n=60``; without one, a list of the
gallery's. Matrices of 100,000 non-zeros or fewer are left out: there a call costs more than the product. Ours
is the row loop that the rule chooses, in one thread and in all of Numba's; SciPy has one. A ratio is our time
over SciPy's: below 1 we are faster. The worst ratio comes first.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numba
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.sparse import csr_array

from sparsecast.benchmark.measurement import right_hand_side
from sparsecast.devices import DEVICES
from sparsecast.devices.binding import bind
from sparsecast.devices.reference import ReferenceProduct
from sparsecast.errors import SparsecastError
from sparsecast.features.analysis import structure
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.machines.machine import detect
from sparsecast.matrices.gallery import gallery_from_specification
from sparsecast.matrices.reading import load, matrix_name
from sparsecast.measuring.timing import Call, Effort, Timing, measure
from sparsecast.records import Candidate

LEAST_NNZ = 100_000
GALLERY_PREFIX = "gallery:"
DEFAULT_MATRICES = (
    "gallery:poisson2d?n=500",
    "gallery:poisson3d?n=60",
    "gallery:poisson3d?n=40&points=27",
    "gallery:elasticity3d?n=16",
    "gallery:banded?n=100000",
    "gallery:random?n=200000",
    "gallery:random?n=400000&nnz_per_row=2",
    "gallery:rmat?scale=16",
    "gallery:circuit?n=200000",
    "gallery:arrow?n=200000",
)
EFFORT = Effort(samples=11, sample_s=0.01)


@dataclass(frozen=True)
class Comparison:
    """What was measured on one matrix; `one` and `all` are our times, `noise` the worst of the three."""

    matrix: str
    rows: int
    nnz: int
    kernel: str
    scipy_s: float
    one_s: float
    one_ratio: float
    all_s: float
    all_ratio: float
    noise: float


def named_matrix(specification: str) -> tuple[str, csr_array[Any]]:
    """Return the name and the matrix of a file or a gallery specification."""
    if specification.startswith(GALLERY_PREFIX):
        return specification, gallery_from_specification(specification.removeprefix(GALLERY_PREFIX))
    return matrix_name(specification), load(specification)


def chosen_kernel(A: csr_array[Any]) -> str:
    """Return the row loop that the rule chooses."""
    kernels = DEVICES.get("cpu").kernels.get("csr")
    return kernels.variants[int(kernels.choose(RowBlocks.of(structure(A)), detect(), A.dtype.name)[0])]


def our_call(A: csr_array[Any], kernel: str, threads: int, x: np.ndarray[Any, Any]) -> Call:
    """Return our product as a callable, after checking its result."""
    candidate = Candidate("csr", kernel, "cpu", A.dtype.name, 8 * A.indices.itemsize, threads)
    product, out = bind(A, candidate).product, np.full(A.shape[0], np.nan, dtype=A.dtype)
    product(x, out)
    ReferenceProduct.of(A, x).check(out, f"csr {kernel} with {threads} threads")
    return lambda: product(x, out)


def compare(name: str, A: csr_array[Any], threads: int) -> Comparison:
    """Measure the three products in turn."""
    x = right_hand_side(A.shape[1], A.dtype.name)
    kernel = chosen_kernel(A)
    found = measure(
        {
            "scipy": lambda: A @ x,
            "one": our_call(A, kernel, 1, x),
            "all": our_call(A, kernel, threads, x),
        },
        EFFORT,
    )
    return comparison(name, A, kernel, found)


def comparison(name: str, A: csr_array[Any], kernel: str, found: dict[str, Timing]) -> Comparison:
    """Put the figures of one matrix together."""
    scipy_s, one_s, all_s = (found[key].time_s for key in ("scipy", "one", "all"))
    noise = max(timing.noise for timing in found.values())
    return Comparison(
        name, A.shape[0], A.nnz, kernel, scipy_s, one_s, one_s / scipy_s, all_s, all_s / scipy_s, noise
    )


def comparisons(specifications: list[str], threads: int, progress: Console) -> Iterator[Comparison]:
    """Yield the figures of every matrix that is large enough; say which ones are left out."""
    for specification in specifications:
        try:
            name, A = named_matrix(specification)
        except SparsecastError as error:
            progress.print(f"left out: {error}", style="yellow", markup=False, soft_wrap=True)
            continue
        if A.nnz > LEAST_NNZ:
            progress.print(f"measuring {name}", style="dim", markup=False)
            yield compare(name, A, threads)


def geometric_mean(ratios: list[float]) -> float:
    """Return the geometric mean of some ratios."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def table(rows: list[Comparison], threads: int) -> Table:
    """Return the figures as a table."""
    made = Table(caption="ratio: our time over SciPy's; noise: two halves of the samples against each other")
    made.add_column("matrix", no_wrap=True)
    made.add_column("kernel")
    numbers = ("nnz", "SciPy ms", "1 thread ms", "ratio", f"{threads} threads ms", "ratio", "noise")
    for heading in numbers:
        made.add_column(heading, justify="right")
    for row in rows:
        times = (
            f"{row.scipy_s * 1e3:.3f}",
            f"{row.one_s * 1e3:.3f}",
            f"{row.one_ratio:.2f}",
            f"{row.all_s * 1e3:.3f}",
            f"{row.all_ratio:.2f}",
        )
        made.add_row(row.matrix, row.kernel, f"{row.nnz:,}", *times, f"{row.noise:.1%}")
    return made


def main() -> None:
    """Compare on the matrices named, or on the gallery's."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("matrices", nargs="*", metavar="MATRIX")
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    arguments = parser.parse_args()
    progress, threads = Console(stderr=True), int(numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]
    specifications = arguments.matrices or list(DEFAULT_MATRICES)
    rows = sorted(comparisons(specifications, threads, progress), key=lambda row: -row.one_ratio)
    if not rows:
        sys.exit(f"no matrix of more than {LEAST_NNZ:,} non-zeros: name a larger one")
    means = {
        "one": geometric_mean([row.one_ratio for row in rows]),
        "all": geometric_mean([row.all_ratio for row in rows]),
    }
    if arguments.json:
        document = {"threads": threads, "rows": [asdict(row) for row in rows], "geometric_mean_ratio": means}
        print(json.dumps(document, indent=2))
        return
    console = Console(width=None if sys.stdout.isatty() else 150)
    console.print(table(rows, threads))
    console.print(
        f"geometric mean of the ratios over {len(rows)} matrices: {means['one']:.3f} with 1 thread, "
        f"{means['all']:.3f} with {threads}"
    )


if __name__ == "__main__":
    main()
