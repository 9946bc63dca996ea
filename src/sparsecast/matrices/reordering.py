"""Orders of rows and columns in which the entries lie near the diagonal."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array


def cuthill_mckee_order(A: csr_array[Any]) -> NDArray[np.int32]:
    """Return the order of reverse Cuthill-McKee (1969) of the pattern of A + A^T, by SciPy.

    ``reordered(A, order)`` has its row i from row ``order[i]`` of `A`, a square matrix.
    """
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    pattern = csr_array((np.ones(A.nnz, dtype=np.int8), A.indices, A.indptr), shape=A.shape)
    order: NDArray[np.int32] = reverse_cuthill_mckee(csr_array(pattern + pattern.T), symmetric_mode=True)
    return order


def reordered(A: csr_array[Any], order: NDArray[Any]) -> csr_array[Any]:
    """Return ``A[order][:, order]``, with the columns of each row ascending."""
    B = csr_array(A[order][:, order])
    B.sort_indices()
    return B
