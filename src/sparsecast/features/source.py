"""The input of feature groups: the arrays of a matrix, and one sweep over them that all share."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array, csr_matrix

from sparsecast.features.row_sweep import RowSweep, sweep_rows
from sparsecast.features.sweep import LEAST_SAMPLED_NNZ, Indices, Range, Sweep, cut, sampled_ranges, sweep


class MatrixSource:
    """What feature groups are computed from: a CSR matrix of any dtype, with indices in any order.

    `workers` is the number of parts that pay, at least 1. No result depends on it.
    Its `indptr` and `indices` are of one native type: views of the matrix' own arrays in all usual cases.
    `ranges` are the entries that a sample consists of: empty where all entries are looked at, as in every
    matrix of fewer than LEAST_SAMPLED_NNZ entries, or of fewer than it has rows and columns: maps of these
    would take more memory than a sample is worth. `triangle_nnz` is that of a matrix that was made symmetric,
    None where nobody knows.
    """

    def __init__(
        self,
        A: csr_array[Any] | csr_matrix[Any],
        workers: int,
        is_sampled: bool = False,
        triangle_nnz: int | None = None,
    ) -> None:
        self.matrix, self.workers, self.triangle_nnz = A, workers, triangle_nnz
        self.shape: tuple[int, int] = A.shape
        wide = max(A.indptr.dtype.itemsize, A.indices.dtype.itemsize) > 4
        index = np.dtype(np.int64 if wide else np.int32)
        self.indptr: Indices = np.ascontiguousarray(A.indptr, dtype=index)
        self.nnz = int(self.indptr[-1])
        self.indices: Indices = np.ascontiguousarray(A.indices, dtype=index)[: self.nnz]
        self.data = A.data[: self.nnz]
        is_large = self.nnz >= max(LEAST_SAMPLED_NNZ, sum(self.shape))
        self.ranges: list[Range] = sampled_ranges(self.nnz) if is_sampled and is_large else []

    @cached_property
    def rows(self) -> RowSweep:
        """What the row lengths are, of all rows, counted when a group first asks for it."""
        return sweep_rows(self.indptr, self.workers)

    @cached_property
    def sweep(self) -> Sweep:
        """The tallies of one pass over the entries, made when a group first asks for them."""
        work = cut(self.matrix, self.nnz, 1 if self.ranges else self.workers)
        return sweep(self.indptr, self.indices, self.shape, work, self.ranges)
