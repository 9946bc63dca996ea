"""2D: every rank has a block (Hossain and Saule, section II.B, 2D uniform partition).

Rank (i, j) of p x p has part j of x, as all ranks of its column have. Sums go along each row of ranks to the
diagonal, and from there along the column: part j of y then lies where part j of x was.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.distributed.distributed_product import (
    COLUMN,
    COMMUNICATION,
    LOCAL,
    ROW,
    Collective,
    DistributedProduct,
    Step,
)
from sparsecast.distributed.messages import free
from sparsecast.distributed.products import PRODUCTS
from sparsecast.matrices.partitioning.distribution import Distribution
from sparsecast.matrices.partitioning.partition import Integers


@PRODUCTS.register("2d")
class TwoD(DistributedProduct):
    """Product of the block, Reduce along the row of ranks to the diagonal, Bcast along the column."""

    is_2d = True

    @classmethod
    def communication(cls, distribution: Distribution) -> Sequence[Collective]:
        words = float(distribution.rows.max(initial=0))
        return [Collective("reduce", words, ROW), Collective("bcast", words, COLUMN)]

    @classmethod
    def buffer_words(cls, distribution: Distribution) -> Integers:
        return distribution.rows

    def _prepare(self) -> None:
        self._row, self._column = divmod(self.part.rank, self.part.partition.parts)
        self._product = self._bound(self.part.matrix, self.configuration.format)
        self._sums = np.empty(self.part.matrix.shape[0], dtype=self.dtype)
        self._along_row = self.comm.Split(self._row, self._column)
        self._along_column = self.comm.Split(self._column, self._row)
        # MPI has a limited number of communicators; to free one takes no message.
        weakref.finalize(self, free, [self._along_row, self._along_column])

    @property
    def steps(self) -> Sequence[Step]:
        return [Step(LOCAL, self._multiply), Step(COMMUNICATION, self._reduce)]

    def _multiply(self, x: NDArray[Any], out: NDArray[Any]) -> None:
        self._product(x, self._sums)

    def _reduce(self, x: NDArray[Any], out: NDArray[Any]) -> None:
        self._along_row.Reduce(self._sums, out if self._row == self._column else None, root=self._row)
        self._along_column.Bcast(out, root=self._column)
