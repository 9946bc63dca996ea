"""METIS k-way: a partition of the graph of the matrix with few edges between parts.

The graph is the pattern of A + A^T without its diagonal, with equal weights of all vertices. METIS minimises
the number of cut edges (Karypis and Kumar 1995, as Hossain and Saule use it).
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.errors import MatrixSizeError
from sparsecast.matrices.partitioning.methods import METHODS
from sparsecast.matrices.partitioning.partition import Integers, Partition, require_square
from sparsecast.system.memory import require_memory

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
    remedy = "partition it by nonzeros, or on a machine with more memory"
    require_memory(_BYTES * (rows + 2 * int(A.nnz)), "METIS on this matrix", remedy)
    part_of = _parts(*adjacency(A), ranks, seed)
    bounds = np.concatenate(([0], np.cumsum(np.bincount(part_of, minlength=ranks))))
    return Partition("metis", ranks, bounds, bounds, np.argsort(part_of, kind="stable"))


def adjacency(A: csr_array[Any]) -> tuple[Integers, NDArray[Any]]:
    """Return the neighbours of each vertex of A + A^T without its diagonal: first places, and neighbours."""
    # Of bool, where the sum of entries at one place, and of A and A^T, cannot come to zero.
    stored = int(A.indptr[-1])
    pattern = csr_array((np.ones(stored, dtype=bool), A.indices[:stored], A.indptr), shape=A.shape)
    both = csr_array(pattern + pattern.T)
    rows = np.repeat(np.arange(both.shape[0], dtype=both.indices.dtype), np.diff(both.indptr))
    is_edge = both.indices != rows
    edges_before = np.concatenate(([0], np.cumsum(is_edge)))
    return edges_before[both.indptr], both.indices[is_edge]


def _parts(first_edges: Integers, neighbours: Integers, parts: int, seed: int) -> Integers:
    from pymetis import CSRAdjacency, Options, part_graph, zero_copy_dtype

    width = zero_copy_dtype()
    if len(neighbours) > (most := np.iinfo(width).max):
        raise MatrixSizeError(
            f"METIS counts up to {most:,} ends of edges and this graph has {len(neighbours):,}; partition it "
            f"by nonzeros, or build METIS with wider indices"
        )
    graph = CSRAdjacency(first_edges.astype(width), neighbours.astype(width))

    # METIS' output goes to standard error: a JSON document may be on standard output.
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        # Where parts have two or three vertices, and a dense graph, k-way can put all of them into one.
        for is_recursive in (False, True):
            result = part_graph(parts, graph, options=Options(seed=seed), recursive=is_recursive)
            part_of = np.array(result.vertex_part, dtype=np.int64)
            if np.bincount(part_of).max() <= 2 * -(-len(part_of) // parts):
                break
    finally:
        ctypes.CDLL(None).fflush(None)
        os.dup2(kept, 1)
        os.close(kept)
    return part_of
