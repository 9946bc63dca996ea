"""The input of feature groups: the arrays of a matrix, and one sweep over them that all share."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array, csr_matrix

from sparsecast.features.sweep import Indices, Sweep, cut, sweep


class MatrixSource:
    """What feature groups are computed from: a CSR matrix of any dtype, with indices in any order.

    `workers` is the number of parts that pay, at least 1. No result depends on it.
    Its `indptr` and `indices` are of one native type: views of the matrix' own arrays in all usual cases.
    """

    def __init__(self, A: csr_array[Any] | csr_matrix[Any], workers: int) -> None:
        self.matrix, self.workers = A, workers
        self.shape: tuple[int, int] = A.shape
        wide = max(A.indptr.dtype.itemsize, A.indices.dtype.itemsize) > 4
        index = np.dtype(np.int64 if wide else np.int32)
        self.indptr: Indices = np.ascontiguousarray(A.indptr, dtype=index)
        self.nnz = int(self.indptr[-1])
        self.indices: Indices = np.ascontiguousarray(A.indices, dtype=index)[: self.nnz]
        self.data = A.data[: self.nnz]

    @cached_property
    def sweep(self) -> Sweep:
        """The tallies of one parallel pass over rows and entries, made when a group first asks for them."""
        work = cut(self.matrix, self.nnz, self.workers)
        return sweep(self.indptr, self.indices, self.shape, work)
