"""The interface of feature groups: computed from a matrix, stored as plain data, and checked."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import csr_array, csr_matrix

from sparsecast.features.sweep import LEAST_SAMPLED_NNZ, Indices, Range, Sweep, cut, sampled_ranges, sweep


class MatrixSource:
    """What feature groups are computed from: a CSR matrix of any dtype, with indices in any order.

    Attributes
    ----------
    workers : int
        Parts of the work that pay, at least 1. No result depends on it.
    indptr, indices : ndarray of int32 or int64
        Of one native type: views of the arrays of the matrix in all usual cases.
    ranges : list of (int, int)
        Entries that a sample consists of. It is empty where all entries are looked at, as in every matrix of
        fewer than LEAST_SAMPLED_NNZ entries, or of fewer than it has rows and columns: maps of these would
        take more memory than a sample is worth.
    triangle_nnz : int or None
        That of a matrix that was made symmetric, None where it is unknown.
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
    def sweep(self) -> Sweep:
        """The counts of one pass over the entries, made when a group first needs them."""
        work = cut(self.matrix, self.nnz, 1 if self.ranges else self.workers)
        return sweep(self.indptr, self.indices, self.shape, work, self.ranges)


class FeatureGroup(ABC):
    """Features of a matrix that are computed together: a frozen dataclass of numbers and tuples of numbers.

    `name` is that of its file, as it is registered. `version` is raised whenever the same matrix would give
    other numbers: stored groups of another version are not used, but computed again if the matrix can be made
    again. A group that is not `is_usual` is computed where it is asked for by name: no forecast pays for it
    that does not need it.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    is_usual: ClassVar[bool] = True

    @classmethod
    @abstractmethod
    def compute(cls, source: MatrixSource) -> Self:
        """Return the features of a matrix."""

    def contradiction(self, rows: int, cols: int, nnz: int) -> str | None:
        """Return in words what no matrix of these dimensions can have; None if nothing is wrong.

        Compiled loops are indexed by features, so features from elsewhere are checked first.
        """
        return None

    def summary(self) -> list[tuple[str, str]]:
        """Return a heading and a text for each row that a table of a Structure shows of the group."""
        features = ", ".join(f"{name} {getattr(self, name)}" for name in self.feature_names())
        return [(self.name, features)]

    def to_dict(self) -> dict[str, Any]:
        """Return the features as plain data, with the version."""
        features = {name: getattr(self, name) for name in self.feature_names()}
        return {"version": self.version, **features}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self | None:
        """Return what `to_dict` stored; None where that was another version.

        Raises
        ------
        KeyError
            If a feature is missing.
        """
        if stored["version"] != cls.version:
            return None
        features = {name: stored[name] for name in cls.feature_names()}
        return cls(
            **{name: tuple(value) if isinstance(value, list) else value for name, value in features.items()}
        )

    @classmethod
    def feature_names(cls) -> list[str]:
        """Return the names of the features, in the order of the fields."""
        return [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]
