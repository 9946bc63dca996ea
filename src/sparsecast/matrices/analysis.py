"""Structure: what models read of a matrix, found in parallel passes over its arrays.

The result depends neither on the number of threads nor on the machine. Two fields are estimated, on parts
chosen by position alone: the block fill and the reuse histogram of matrices above a size. Everything else
is exact, symmetry but for one chance in 2**64.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, csr_matrix, issparse

from sparsecast.errors import InputError
from sparsecast.matrices.block_fill import block_fill
from sparsecast.matrices.sweep import Indices, cut, sweep
from sparsecast.matrices.symmetry import triangle_nnz
from sparsecast.matrices.values import VALUE_TYPES
from sparsecast.parallel import ENTRIES_PER_THREAD, equal_parts, on_threads
from sparsecast.records import ROW_LENGTH_LEVELS, Structure


def structure(A: csr_array | csr_matrix, *, threads: int | None = None) -> Structure:
    """Return the Structure of a matrix.

    On two cores it costs about as much as one to three products of SciPy; on one, up to five where the
    product runs from the caches. Above 1,000,000 entries the work arrays take at most
    a tenth of the bytes of the CSR arrays; where the columns alone would break that bound (far more
    columns than entries) the pass is repeated over windows of columns.

    Parameters
    ----------
    A : csr_array or csr_matrix of shape (rows, cols)
        Any dtype; int32 or int64 indices, which may be unsorted or duplicate. Not changed.
    threads : int, optional
        Threads to use, by default those of Numba (all, or ``NUMBA_NUM_THREADS``). The result does not
        depend on it; one thread starts no pool.

    Returns
    -------
    Structure
        Exact but for two fields, and for symmetry, which rests on fingerprints.
        `block_fill` is estimated above 65,536 entries: groups of 24 rows are
        drawn with a chance proportional to their entries, evenly over the stored entries, and of a long
        group only a scattered selection of columns is looked at. `x_reuse_histogram` is estimated above
        262,144 entries: the reads in one of up to 16 runs of 512 entries are looked up, against the
        history of all reads. Its length is X_REUSE_ELEMENTS; all its shares are 0 without entries.

    Raises
    ------
    InputError
        If `A` is not CSR or `threads` is below 1.

    Notes
    -----
    Bands follow Gahvari et al. 2007, section III. A band of a rectangular matrix is found in double
    precision, which can put an entry that lies on the edge of two bands into the wrong one when
    rows * cols / gcd(rows, cols) exceeds 1e14.
    """
    if not issparse(A) or A.format != "csr":
        raise InputError(f"a {type(A).__name__}: expected a CSR matrix; convert it with csr_array(A)")
    threads = numba.get_num_threads() if threads is None else threads
    if threads < 1:
        raise InputError(f"threads = {threads}: expected an integer of at least 1; give a larger one")
    rows, cols = A.shape
    indptr, indices = _plain_indices(A)
    nnz = int(indptr[-1])
    workers = max(1, min(threads, nnz // ENTRIES_PER_THREAD))
    zeros = on_threads(lambda first, last: _count_zeros(A.data[first:last]), equal_parts(nnz, workers))
    found = sweep(indptr, indices, (rows, cols), cut(A, nnz, workers))
    return Structure(
        rows=rows,
        cols=cols,
        nnz=nnz,
        explicit_zeros=sum(zeros),
        **row_length_statistics(found.lengths, found.length_counts),
        row_length_changes=found.length_changes,
        mispredicted_rows=found.mispredicted_rows,
        half_bandwidth=found.half_bandwidth,
        band_histogram=tuple((found.bands / max(nnz, 1)).tolist()),
        diagonals=found.diagonals,
        triangle_nnz=triangle_nnz(indptr, indices, A.data[:nnz], (rows, cols), workers),
        block_fill=block_fill(indptr, indices),
        x_line_changes=found.line_changes,
        x_reuse_histogram=tuple((found.reuse / max(int(found.reuse.sum()), 1)).tolist()),
    )


def _plain_indices(A: csr_array | csr_matrix) -> tuple[Indices, Indices]:
    """Return indptr and indices in one native type; views of the matrix's own arrays in all usual cases."""
    wide = max(A.indptr.dtype.itemsize, A.indices.dtype.itemsize) > 4
    index = np.dtype(np.int64 if wide else np.int32)
    indptr = np.ascontiguousarray(A.indptr, dtype=index)
    return indptr, np.ascontiguousarray(A.indices, dtype=index)[: indptr[-1]]


def _count_zeros(data: NDArray[Any]) -> int:
    if data.dtype in VALUE_TYPES:
        return int(_count_zeros_compiled(data))
    # Other types are left to NumPy, in parts that stay in the second-level cache: the mask never becomes a
    # large array.
    return sum(int(np.count_nonzero(data[k : k + 65536] == 0)) for k in range(0, data.size, 65536))


@numba.njit(cache=True, nogil=True)
def _count_zeros_compiled(data):  # type: ignore[no-untyped-def]
    zeros = 0
    for value in data:
        zeros += value == 0
    return zeros


def row_length_statistics(lengths: NDArray[np.int64], counts: NDArray[np.int64]) -> dict[str, Any]:
    """Return those fields of a Structure that the row lengths tell in whatever order they come.

    Parameters
    ----------
    lengths : int64 array of shape (n,)
        The lengths that rows have, ascending, each once.
    counts : int64 array of shape (n,)
        The rows of each length.
    """
    rows, nnz = int(counts.sum()), int(counts @ lengths)
    mean = nnz / max(rows, 1)
    longest = int(lengths.max(initial=0))
    levels = np.array(ROW_LENGTH_LEVELS[: int(np.searchsorted(ROW_LENGTH_LEVELS, longest)) + 1])
    shorter = np.searchsorted(lengths, levels)
    rows_below = np.concatenate(([0], np.cumsum(counts)))[shorter]
    entries_below = np.concatenate(([0], np.cumsum(counts * lengths)))[shorter]
    rows_at_least = rows - rows_below
    return {
        "row_length_mean": mean,
        "row_length_deviation": math.sqrt(float(np.sum(counts * (lengths - mean) ** 2)) / max(rows, 1)),
        "row_length_mode": int(lengths[np.argmax(counts)]) if rows else 0,
        "row_length_min": int(lengths[0]) if rows else 0,
        "row_length_max": longest,
        "empty_rows": int(counts[lengths == 0].sum()),
        "rows_at_least": tuple(rows_at_least.tolist()),
        "entries_up_to": tuple((entries_below + rows_at_least * levels).tolist()),
    }
