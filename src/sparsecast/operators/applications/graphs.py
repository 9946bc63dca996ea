"""The transposed graph for PageRank: the links to each node, weighted by the share of their origin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.errors import InputError

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Links:
    """The transposed graph."""

    #: Shape (nodes, nodes): row j holds the edges to node j. If all weights are equal, they are those of the
    #: graph, in the same array; otherwise each is divided by the sum of the weights that leave its node.
    matrix: csr_array[Any]
    #: Shape (nodes,): one over the sum of the weights that leave each node, 0 for a dangling one: the factor
    #: of the vector before a product. None if the matrix is already divided.
    inverse_weight: Floats | None
    dangling: NDArray[np.integer[Any]]  # nodes without leaving weight

    @property
    def nodes(self) -> int:
        return int(self.matrix.shape[0])


def links(A: csr_array[Any]) -> Links:
    """Return the links of a graph with an edge i -> j of weight a_ij for each entry of A.

    Edges from a node to itself count, entries of 0 do not. Without any edge all nodes are dangling, and
    PageRank is the same for each. An InputError refuses an A that is not square, is complex, or has a
    negative or infinite weight.
    """
    entries = int(A.indptr[-1])
    if entries < len(A.data):  # room behind the entries, as SciPy leaves it
        A = csr_array((A.data[:entries], A.indices[:entries], A.indptr), shape=A.shape)
    _refuse_no_graph(A)
    rows = A.shape[0]
    lengths = np.diff(A.indptr)
    is_alike = A.nnz == 0 or bool(A.data[0] > 0 and (A.data == A.data[0]).all())
    if is_alike:
        leaving = lengths * (A.data[0] if A.nnz else A.dtype.type(0))
    else:
        leaving = np.asarray(A.sum(axis=1), dtype=A.dtype).reshape(-1)
    inverse = np.zeros(rows, dtype=A.dtype)
    with np.errstate(over="ignore"):  # looked at in the next line
        np.divide(1, leaving, out=inverse, where=leaving > 0)
    _refuse_extremes(leaving, inverse)
    dangling = np.flatnonzero(leaving == 0).astype(A.indices.dtype)
    if is_alike:
        # Only the places are transposed: one byte per entry instead of eight, and no second array of values.
        places = csr_array((np.zeros(A.nnz, dtype=np.int8), A.indices, A.indptr), shape=A.shape).tocsc()
        matrix = csr_array((A.data, places.indices, places.indptr), shape=A.shape)
        return Links(_sorted(matrix), inverse, dangling)
    scaled = csr_array((A.data * np.repeat(inverse, lengths), A.indices, A.indptr), shape=A.shape).tocsc()
    return Links(
        _sorted(csr_array((scaled.data, scaled.indices, scaled.indptr), shape=A.shape)), None, dangling
    )


def _sorted(matrix: csr_array[Any]) -> csr_array[Any]:
    matrix.has_sorted_indices = True  # a transposition goes through the rows in order
    return matrix


def _refuse_extremes(leaving: Floats, inverse: Floats) -> None:
    """Raise if the weights that leave a node have no finite sum, or their sum no finite inverse."""
    odd = np.flatnonzero(~(np.isfinite(leaving) & np.isfinite(inverse)))
    if odd.size:
        node = int(odd[0])
        raise InputError(
            f"a graph whose weights from node {node:,} sum to {leaving[node]:g}: expected a sum with "
            f"a finite inverse; scale the weights"
        )


def _refuse_no_graph(A: csr_array[Any]) -> None:
    if A.shape[0] != A.shape[1] or not A.shape[0]:
        raise InputError(
            f"a graph of {A.shape[0]:,} rows and {A.shape[1]:,} columns: expected as many columns as rows, "
            f"at least one; name the adjacency matrix of a graph"
        )
    if A.dtype.kind == "c":
        raise InputError("a graph with complex weights: expected real ones; take their absolute values")
    if A.nnz and not np.isfinite(A.data).all():
        raise InputError("a graph with weights that are NaN or infinite: expected finite ones; remove them")
    if A.nnz and A.data.min() < 0:
        raise InputError(
            f"a graph with the weight {A.data.min():g}: expected none below 0, because PageRank takes "
            f"weights for probabilities; take absolute values, or leave the edge out"
        )
