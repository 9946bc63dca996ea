"""What a Structure costs: its time over that of one SciPy product, its extra memory over the CSR arrays.

Run as ``python benchmarks/structure.py``. Structure and product alternate in one run, as machines drift; the
least of several times is quoted. Bounds: 3 products, and a tenth of the bytes.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable

import numba
import numpy as np
from scipy.sparse import csr_array

from sparsecast.features.analysis import structure
from sparsecast.matrices.gallery import gallery_from_specification

SPECIFICATIONS = (
    "poisson3d",
    "poisson3d?n=60&points=27",
    "elasticity3d",
    "banded",
    "random",
    "random?n=600000&nnz_per_row=2",
    "rmat",
    "circuit",
    "arrow",
)
SAMPLES = 15


def seconds(task: Callable[[], object]) -> float:
    """Return the seconds that one call takes."""
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def extra_bytes(task: Callable[[], object]) -> int:
    """Return the peak of the memory that one call allocates, as far as Python and NumPy see it."""
    tracemalloc.start()
    task()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def alternated(tasks: list[Callable[[], object]]) -> list[float]:
    """Return the least seconds of each task, sampled in turns."""
    samples = [[seconds(task) for task in tasks] for _ in range(SAMPLES)]
    return [min(each) for each in zip(*samples, strict=True)]


def row(specification: str, threads: int) -> str:
    """Return the table's line for one matrix."""
    A: csr_array = gallery_from_specification(specification)
    x = np.ones(A.shape[1])
    tasks: list[Callable[[], object]] = [
        lambda: A @ x,
        lambda: structure(A, threads=1),
        lambda: structure(A, threads=threads),
    ]
    extra = extra_bytes(tasks[2])
    product, one, many = alternated(tasks)
    csr_bytes = A.data.nbytes + A.indices.nbytes + A.indptr.nbytes
    return (
        f"{specification:32} {A.nnz / 1e6:7.2f} {product * 1e3:9.2f} {one / product:11.2f} "
        f"{many / product:11.2f} {many / product * 2:11.2f} {extra / csr_bytes:10.3f}"
    )


def main() -> None:
    """Print the table."""
    threads = numba.get_num_threads()
    cold = seconds(lambda: structure(gallery_from_specification("poisson2d?n=10")))
    print(f"first call {cold:.2f} s (compiles unless cached); products are SciPy's, on one thread")
    print(
        f"{'':32} {'million':>7} {'product':>9} {'1 thread':>11} {f'{threads} threads':>11} "
        f"{'if twice':>11} {'extra':>10}"
    )
    print(
        f"{'matrix':32} {'entries':>7} {'ms':>9} {'in products':>11} {'in products':>11} "
        f"{'as fast':>11} {'of bytes':>10}"
    )
    for specification in SPECIFICATIONS:
        print(row(specification, threads), flush=True)


if __name__ == "__main__":
    main()
