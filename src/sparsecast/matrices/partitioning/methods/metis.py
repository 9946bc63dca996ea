"""METIS k-way: a partition of the graph of the matrix with few edges between parts.

The graph is the pattern of A + A^T without its diagonal, with equal weights of all vertices. METIS minimises
the number of cut edges (Karypis and Kumar 1995, as Hossain and Saule use it).
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from sparsecast.errors import MatrixSizeError
from sparsecast.matrices.partitioning.methods import METHODS
from sparsecast.matrices.partitioning.methods.graph import adjacency, require_square
from sparsecast.matrices.partitioning.partition import Integers, Partition
from sparsecast.system.memory import free_bytes

#: Bytes that METIS takes at most for a vertex and for each end of an edge; R-MAT graphs take the most.
_BYTES = 110


@METHODS.register("metis")
def by_metis(A: csr_array[Any], ranks: int, seed: int) -> Partition:
    """Renumber rows and columns so that METIS' parts are contiguous; rows of a part keep their order."""
    require_square(A.shape, "metis")
    rows = A.shape[0]
    if ranks == 1 or ranks >= rows:  # METIS would complain or leave parts empty
        bounds = np.minimum(np.arange(ranks + 1), rows) if ranks > 1 else np.array([0, rows])
        return Partition("metis", ranks, bounds, bounds)
    _require_memory(rows + 2 * int(A.nnz))
    part_of = _parts(*adjacency(A), ranks, seed)
    bounds = np.concatenate(([0], np.cumsum(np.bincount(part_of, minlength=ranks))))
    return Partition("metis", ranks, bounds, bounds, np.argsort(part_of, kind="stable"))


def _require_memory(vertices_and_ends: int) -> None:
    """Refuse a graph that is too large for METIS: the system ends a process that takes too much memory."""
    needed, free = _BYTES * vertices_and_ends, free_bytes()
    if needed > free:
        raise MatrixSizeError(
            f"METIS takes about {needed / 2**30:.3g} GiB for this matrix and {free / 2**30:.3g} GiB of "
            f"memory are available; partition it by nonzeros, or on a machine with more memory"
        )


def _parts(first_edges: Integers, neighbours: Integers, parts: int, seed: int) -> Integers:
    from pymetis import CSRAdjacency, Options, part_graph, zero_copy_dtype

    width = zero_copy_dtype()
    if len(neighbours) > (most := np.iinfo(width).max):
        raise MatrixSizeError(
            f"METIS counts up to {most:,} ends of edges and this graph has {len(neighbours):,}; partition it "
            f"by nonzeros, or build METIS with wider indices"
        )
    graph = CSRAdjacency(first_edges.astype(width), neighbours.astype(width))

    def partitioned(is_recursive: bool) -> Integers:
        with _standard_output_to_error():
            result = part_graph(parts, graph, options=Options(seed=seed), recursive=is_recursive)
        return np.array(result.vertex_part, dtype=np.int64)

    part_of = partitioned(is_recursive=False)
    # Where parts have two or three vertices, and a dense graph, k-way can put all of them into one.
    if np.bincount(part_of).max() > 2 * -(-len(part_of) // parts):
        part_of = partitioned(is_recursive=True)
    return part_of


@contextmanager
def _standard_output_to_error() -> Iterator[None]:
    """Send METIS' output to standard error: a JSON document may be on standard output."""
    c_library = ctypes.CDLL(None)
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        yield
    finally:
        c_library.fflush(None)
        os.dup2(kept, 1)
        os.close(kept)
