"""Symmetric CSR: one triangle of a symmetric, a skew-symmetric or a Hermitian matrix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats import FORMATS
from sparsecast.formats.mirrored import MirroredFormat
from sparsecast.formats.narrowing import VALUES, Narrow
from sparsecast.formats.storage_format import Integers
from sparsecast.system.jit import njit
from sparsecast.system.parallel import balanced_parts, in_parts

_ZERO, _ONE = np.uint64(0), np.uint64(1)


@FORMATS.register("symmetric_csr")
@dataclass(frozen=True)
class SymmetricCSR(MirroredFormat):
    """The diagonal as a dense vector and the entries below it as CSR: half the bytes of the matrix."""

    name: ClassVar[str] = "symmetric_csr"
    benchmark_kinds: ClassVar[tuple[str, ...]] = ("symmetric", "mirrored")
    narrow_parameters: ClassVar[Mapping[str, tuple[Any, ...]]] = {"values": VALUES}

    #: The first entry of each row below the diagonal, and their number: shape (rows + 1,).
    starts: NDArray[Any]
    indices: NDArray[Any]  # shape (entries below the diagonal,)
    #: As `indices`, or of shape (1,) where these are alike. Narrow values are as in Narrow; narrow columns
    #: won nothing here.
    data: NDArray[Any]
    #: Shape (rows,), 0 where the matrix has no entry. Such a row reads an x that is not in the matrix: where
    #: that is not finite, the row is NaN.
    diagonal: NDArray[Any]

    @classmethod
    def from_csr(cls, A: csr_array[Any], values: str | None = None) -> Self:
        """Return the lower triangle of `A`, after every entry above the diagonal was compared with it.

        `values` is as in Narrow, for the entries below the diagonal.
        """
        starts = np.zeros(A.shape[0] + 1, dtype=A.indptr.dtype)
        kind = cls.kind_of(A, starts[1:])
        nnz, rows = int(A.indptr[-1]), A.shape[0]
        matrix, bounds = (A.indptr, A.indices[:nnz], A.data), balanced_parts(A.indptr)
        diagonal = np.zeros(rows, dtype=A.data.dtype)
        in_parts(_take_diagonal, (*matrix, starts, diagonal), bounds)
        np.cumsum(starts, out=starts)
        below = int(starts[-1])
        entry_bytes = A.data.itemsize + A.indices.itemsize
        cls.refuse_excess(nnz, below + rows, below * entry_bytes)
        triangle = cls.empty(below, A)
        in_parts(_copy_below, (*matrix, starts, *triangle), bounds)
        indices, data = triangle
        return cls(
            A.shape, nnz, kind, starts, indices, Narrow(values).stored_values(data), diagonal, values=values
        )

    @classmethod
    def stored_entries(cls, blocks: RowBlocks, **how: Any) -> Integers:
        return cls._below(blocks) + blocks.rows

    @classmethod
    def predicted_bytes(cls, blocks: RowBlocks, value_bytes: int, index_bytes: int, **how: Any) -> Integers:
        below = Narrow(**how).size(cls._below(blocks), blocks.rows, value_bytes, index_bytes)
        return np.asarray(below + (blocks.rows + 1) * index_bytes + blocks.rows * value_bytes)

    @classmethod
    def working_bytes(cls, blocks: RowBlocks, value_bytes: int, index_bytes: int, **how: Any) -> Integers:
        """Return the values below the diagonal in full, of which narrow ones are made."""
        return cls._below(blocks) * (value_bytes if how.get("values") else 0)

    @classmethod
    def row_end_work(cls, blocks: RowBlocks, **how: Any) -> dict[str, NDArray[Any]]:
        """Return the mispredicted rows below the diagonal: those are the rows of the loop."""
        below = blocks.matrix.symmetry.mispredicted_below
        return {
            "mispredicted": blocks.mispredicted_rows if below is None else np.full(len(blocks.rows), below)
        }

    @staticmethod
    def _below(blocks: RowBlocks) -> NDArray[np.int64]:
        triangle = blocks.matrix.symmetry.triangle_nnz
        # Half the entries for any other block.
        return blocks.nnz // 2 if triangle is None else blocks.nnz - np.minimum(triangle, blocks.nnz)


@njit(nogil=True, cache=True)
def _take_diagonal(indptr, indices, data, starts, diagonal, first, last):
    """Take the last of the entries that are counted behind each row's place in `starts`, if it is there."""
    for i in range(first, last):
        count, end = starts[i + _ONE], np.uint64(indptr[i]) + np.uint64(starts[i + _ONE])
        if count > _ZERO and np.uint64(indices[end - _ONE]) == i:
            diagonal[i] = data[end - _ONE]
            starts[i + _ONE] = count - _ONE


@njit(nogil=True, cache=True)
def _copy_below(indptr, indices, data, starts, triangle_indices, triangle_data, first, last):
    for i in range(first, last):
        shift = np.uint64(indptr[i]) - np.uint64(starts[i])
        for place in range(np.uint64(starts[i]), np.uint64(starts[i + _ONE])):
            triangle_indices[place] = indices[place + shift]
            triangle_data[place] = data[place + shift]
