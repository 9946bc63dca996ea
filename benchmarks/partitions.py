"""What partitions of meshes communicate, against theory, and what they cost to make and to count.

Run as ``python benchmarks/partitions.py``. Words are entries of x that all ranks receive in one product of
local 1D, in 2D of x and y. Theory is `estimated_distribution`: strips for rows and non-zeros, cubes for
METIS, from counts alone. The times are those of one call each, the functions compiled before.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from scipy.sparse import csr_array

from sparsecast.matrices.gallery import gallery_from_specification
from sparsecast.matrices.partitioning.distributing import distribute
from sparsecast.matrices.partitioning.estimates import estimated_distribution
from sparsecast.matrices.partitioning.methods import METHODS, partition, usable_method

#: Meshes of about 10 million entries, and small ones, with their dimensions.
MESHES = {"poisson2d?n=1400": 2, "poisson3d?n=115": 3, "poisson3d?n=72&points=27": 3}
RANKS = (16, 64, 256, 1024, 10_000)

T = TypeVar("T")


def timed(task: Callable[[], T]) -> tuple[T, float]:
    """Return what a call gives, and the seconds that it takes."""
    start = time.perf_counter()
    found = task()
    return found, time.perf_counter() - start


def row(A: csr_array, dimension: int, ranks: int, method: str) -> str:
    """Return the table's line for one partition."""
    made, partition_s = timed(lambda: partition(A, ranks, method))
    found, distribute_s = timed(lambda: distribute(A, made))
    costs = f"{partition_s:9.3f} {distribute_s:9.3f}"
    if found.is_2d:
        return (
            f"{ranks:7,} {method:10} {found.volume_words:12,} {'':38} {found.imbalance:9.2f} {'':14} {costs}"
        )
    theory = estimated_distribution(*A.shape, A.nnz, ranks, method, dimension)
    words, in_theory = found.received_words, theory.received_words.sum()
    others, others_in_theory = found.received_messages, theory.received_messages.mean()
    return (
        f"{ranks:7,} {method:10} {words.sum():12,} {in_theory:12,} {words.sum() / in_theory:7.2f} "
        f"{words.max() / words.mean():8.2f} {found.remote_nnz.sum() / words.sum():8.2f} "
        f"{found.imbalance:9.2f} {others.mean():6.1f} {others_in_theory:7.1f} {costs}"
    )


def main() -> None:
    """Print a table for each mesh."""
    methods = [name for name in METHODS.names() if usable_method(name)[0] == name]
    for method in methods:
        A = gallery_from_specification("poisson2d?n=10")
        distribute(A, partition(A, 4, method))
    for specification, dimension in MESHES.items():
        A = gallery_from_specification(specification)
        print(f"\n{specification}: {A.shape[0]:,} rows, {A.nnz:,} entries")
        print(
            f"{'':7} {'':10} {'':12} {'words':>12} {'':7} {'most':>8} {'remote':>8} {'imba-':>9} "
            f"{'neigh-':>6} {'in':>7} {'to parti-':>9} {'to count':>9}"
        )
        print(
            f"{'ranks':>7} {'method':10} {'words':>12} {'in theory':>12} {'ratio':>7} {'/ mean':>8} "
            f"{'/ words':>8} {'lance':>9} {'bours':>6} {'theory':>7} {'tion, s':>9} {'s':>9}"
        )
        for ranks in RANKS:
            for method in methods:
                print(row(A, dimension, ranks, method), flush=True)


if __name__ == "__main__":
    main()
