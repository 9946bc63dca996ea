"""Table I of Hossain and Saule: the bytes that a product accesses, by format.

array      CSR                    COO
row index  2 rows, sequential     nnz, sequential
columns    nnz, sequential        nnz, sequential
values     nnz, sequential        nnz, sequential
x          nnz, irregular         nnz, irregular
y          rows, sequential       nnz, irregular

The kernel of COO here adds up a row in a register and writes y where the row changes; Table I, and so the
model, charges every entry. The precision of the paper's products is not stated: here it is float64.
"""

from __future__ import annotations

import numpy as np

from sparsecast.models.fitting import Floats
from sparsecast.records import Candidate, Configuration
from sparsecast.system.memory import CACHE_LINE_BYTES

#: The formats of all models of the paper, and its three distributed products.
FORMATS_OF_THE_PAPER = ("csr", "coo")
ALGORITHMS_OF_THE_PAPER = ("global-1d", "local-1d", "2d")


def accessed_bytes(way: Candidate | Configuration, rows: Floats, nnz: Floats, *, zeroes_y: bool) -> Floats:
    """Return the bytes that a product accesses; with `zeroes_y` COO sets y to zero first."""
    is_coo, value_bytes, index_bytes = way.format == "coo", way.value_bytes, way.index_bytes
    row_indices = nnz if is_coo else 2 * rows
    y = nnz if is_coo else rows
    if is_coo and zeroes_y:
        y = y + rows
    return np.asarray(
        row_indices * index_bytes + nnz * (index_bytes + value_bytes) + nnz * value_bytes + y * value_bytes
    )


def memory_terms(
    way: Candidate | Configuration, accessed: Floats, misses: Floats, bytes_per_s: Floats
) -> dict[str, Floats]:
    """Return the seconds of sequential accesses and hits, and of misses, which move a line for a value."""
    return {
        "sequential": (accessed - misses * way.value_bytes) / bytes_per_s,
        "misses": misses * CACHE_LINE_BYTES / bytes_per_s,
    }
