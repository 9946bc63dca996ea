"""Computes the Structure of a matrix, in passes over its arrays.

The result depends neither on the number of threads nor on the machine. For large matrices, the fill of
blocks, the histogram of reuse and the mispredicted rows below the diagonal are estimated, on parts that
depend on position alone. Everything else is exact, symmetry up to a chance of 2**-64. From a sample,
locality, bands and stored zeros are estimated. What it shows of symmetry, of the needs of narrow storage, and
of few diagonals is believed, and named as unproven.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, csr_matrix, issparse

from sparsecast.errors import InputError
from sparsecast.features import FEATURES, usual_groups
from sparsecast.features.structure import Structure
from sparsecast.features.sweep import (
    LEAST_SAMPLED_NNZ,
    Indices,
    Range,
    Sweep,
    sampled_entries,
    sampled_ranges,
    sweep,
)
from sparsecast.features.value_scan import are_alike
from sparsecast.system.parallel import ENTRIES_PER_THREAD

#: Values of each range of a sample that are looked at for narrow storage.
_VALUES_OF_A_RANGE = 4096


class MatrixSource:
    """The input of feature groups: a CSR matrix of any dtype, with indices in any order.

    Attributes
    ----------
    workers : int
        Parts of the work that pay, at least 1. No result depends on it.
    indptr, indices : ndarray of int32 or int64
        Of one native type, usually views of the arrays of the matrix.
    ranges : list of (int, int)
        Ranges of entries of a sample. Empty for all entries, as in every matrix with fewer than
        LEAST_SAMPLED_NNZ entries, or fewer than rows plus columns, whose maps would need too much memory.
    triangle_nnz : int or None
        Entries of one triangle of a matrix that is known to be symmetric, else None.
    unproven : set of str
        As in a Structure; a group adds its name.
    """

    def __init__(
        self,
        A: csr_array[Any] | csr_matrix[Any],
        workers: int,
        is_sampled: bool = False,
        triangle_nnz: int | None = None,
    ) -> None:
        self.workers, self.triangle_nnz = workers, triangle_nnz
        self.shape: tuple[int, int] = A.shape
        wide = max(A.indptr.dtype.itemsize, A.indices.dtype.itemsize) > 4
        index = np.dtype(np.int64 if wide else np.int32)
        self.indptr: Indices = np.ascontiguousarray(A.indptr, dtype=index)
        self.nnz = int(self.indptr[-1])
        self.indices: Indices = np.ascontiguousarray(A.indices, dtype=index)[: self.nnz]
        self.data = A.data[: self.nnz]
        is_large = self.nnz >= max(LEAST_SAMPLED_NNZ, sum(self.shape))
        self.ranges: list[Range] = sampled_ranges(self.nnz) if is_sampled and is_large else []
        self.unproven: set[str] = set()

    @cached_property
    def sweep(self) -> Sweep:
        """The counts of one pass over the entries, made on first use."""
        return sweep(self.indptr, self.indices, self.shape, self.ranges)

    @cached_property
    def all_alike(self) -> bool:
        """Whether all values have the same bits, and there is one; found on first use."""
        return all(are_alike(values, self.workers) for values in self.values)

    @cached_property
    def values(self) -> list[NDArray[Any]]:
        """All values; of a sample some of all parts, and the first ones of each range."""
        if not self.ranges:
            return [self.data]
        together = (self.data[first : first + _VALUES_OF_A_RANGE] for first, _ in self.ranges)
        return [self.data[sampled_entries(self.nnz)], *together]

    @cached_property
    def row_ranges(self) -> list[Range]:
        """The first row in which a range begins, and the end of the rows that it reaches into."""
        bounds = np.array(self.ranges, dtype=self.indptr.dtype)  # of another type, all pointers are copied
        return [(int(first), int(end)) for first, end in np.searchsorted(self.indptr, bounds)]


def structure(
    A: csr_array[Any] | csr_matrix[Any],
    *,
    threads: int | None = None,
    groups: Sequence[str] | None = None,
    is_sampled: bool = False,
    triangle_nnz: int | None = None,
) -> Structure:
    """Return the Structure of a matrix.

    On one core it costs two to six products of SciPy, most for small matrices. Above 1,000,000 entries the
    work arrays take at most a tenth of the bytes of the CSR arrays, if each column has some entries.

    Parameters
    ----------
    A : csr_array or csr_matrix of shape (rows, cols)
        Any dtype; int32 or int64 indices, which may be unsorted or duplicate. Not changed.
    threads : int, optional
        By default those of Numba (all, or ``NUMBA_NUM_THREADS``). The result does not depend on it; one
        thread starts no pool.
    groups : sequence of str, optional
        Names of the feature groups to compute; by default the `usual_groups`.
    is_sampled : bool
        Whether a sample of a large matrix suffices, as for a forecast. Row lengths and block fill are
        computed as from all entries anyway.
    triangle_nnz : int, optional
        Entries on and below the diagonal of a matrix that is known to be symmetric; otherwise symmetry is
        tested.

    Raises
    ------
    InputError
        If `A` is not CSR or `threads` is below 1.
    UnknownNameError
        If there is no group of such a name.
    """
    if not issparse(A) or A.format != "csr":
        raise InputError(f"a {type(A).__name__}: expected a CSR matrix; convert it with csr_array(A)")
    threads = numba.get_num_threads() if threads is None else threads
    if threads < 1:
        raise InputError(f"threads = {threads}: expected an integer of at least 1; give a larger one")
    workers = max(1, min(threads, int(A.indptr[-1]) // ENTRIES_PER_THREAD))
    source = MatrixSource(A, workers, is_sampled, triangle_nnz)
    wanted = [FEATURES.get(name) for name in (usual_groups() if groups is None else groups)]
    computed = {group.name: group.compute(source) for group in wanted}
    sampled_nnz = sum(last - first for first, last in source.ranges) or None
    return Structure(*source.shape, source.nnz, computed, sampled_nnz, tuple(sorted(source.unproven)))
