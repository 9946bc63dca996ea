"""Symmetric BCSR: the blocks of one triangle of a symmetric, a skew-symmetric or a Hermitian matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.errors import InputError
from sparsecast.features.blocks import BLOCK_SIZES
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats import FORMATS
from sparsecast.formats.bcsr import BCSR, best_block, best_blocks
from sparsecast.formats.mirrored import MirroredFormat
from sparsecast.formats.storage_format import Integers, StorageFormat
from sparsecast.formats.symmetric_csr import SymmetricCSR
from sparsecast.system.jit import njit
from sparsecast.system.parallel import balanced_parts, in_parts

_ONE = np.uint64(1)


@FORMATS.register("symmetric_bcsr")
@dataclass(frozen=True)
class SymmetricBCSR(MirroredFormat, BCSR):
    """The square blocks of BCSR on the diagonal, whole, and below it: half the bytes of the matrix.

    As in BCSR, the last block on the diagonal is shifted left to end with the matrix.
    """

    name: ClassVar[str] = "symmetric_bcsr"
    benchmark_kinds: ClassVar[tuple[str, ...]] = ("symmetric blocks", "mirrored")
    plain_format: ClassVar[type[StorageFormat]] = SymmetricCSR

    @classmethod
    def from_csr(
        cls, A: csr_array[Any], block: tuple[int, int] | None = None, values: str | None = None
    ) -> Self:
        """Return the lower triangle of `A`, after every entry above the diagonal was compared with it.

        Both sides of a `block` are of BLOCK_SIZES; without it, `best_block` chooses. `values` are as in BCSR.
        """
        if block is not None and block not in {(side, side) for side in BLOCK_SIZES}:
            raise InputError(
                f"block {block}: expected a square with a side of {', '.join(map(str, BLOCK_SIZES))}; "
                f"name such a size, or none"
            )
        ends = np.empty(A.shape[0], dtype=A.indptr.dtype)
        kind, nnz = cls.kind_of(A, ends), int(A.indptr[-1])
        ends += A.indptr[:-1]
        block = block or best_blocks(A)
        arrays = A.indptr, A.indices[:nnz], np.uint64(block[0]), ends
        in_parts(_end_with_the_block, arrays, balanced_parts(A.indptr))
        return cls(A.shape, nnz, block, *cls._cut(A, ends, block, values), kind, values=values)

    @classmethod
    def stored_blocks(cls, blocks: RowBlocks) -> NDArray[np.int64]:
        """Return the number of blocks on and below the diagonal; half of all for a row block."""
        every, counted = super().stored_blocks(blocks), blocks.matrix.symmetry.diagonal_blocks
        side = best_block(blocks.matrix.blocks.fill)
        diagonal = -(-blocks.rows // side) if counted is None else counted[BLOCK_SIZES.index(side)]
        return np.asarray((every + np.minimum(every, diagonal)) // 2)

    @classmethod
    def working_bytes(cls, blocks: RowBlocks, value_bytes: int, index_bytes: int, **how: Any) -> Integers:
        """Return also the place behind the last entry of each row that is kept."""
        of_values = super().working_bytes(blocks, value_bytes, index_bytes, **how)
        return np.asarray(of_values + blocks.rows * index_bytes)


@njit(nogil=True, cache=True)
def _end_with_the_block(indptr, indices, side, ends, first, last):
    """Move the end of each row from behind the diagonal to the end of the block that is on it."""
    for i in range(first, last):
        k, beyond = np.uint64(ends[i]), (i // side + _ONE) * side
        while k < np.uint64(indptr[i + _ONE]) and np.uint64(indices[k]) < beyond:
            k += _ONE
        ends[i] = k
