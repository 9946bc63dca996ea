"""A distributed product whose ranks broadcast their parts of x, one after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.distributed.distributed_product import (
    COMMUNICATION,
    LOCAL,
    Collective,
    DistributedProduct,
    Step,
)
from sparsecast.distributed.products import PRODUCTS
from sparsecast.matrices.partitioning.distribution import Distribution


@PRODUCTS.register("bcast-1d")
class Bcast1D(DistributedProduct):
    gathers_x = True

    @classmethod
    def communication(cls, distribution: Distribution) -> Sequence[Collective]:
        ranks = distribution.ranks
        return [Collective("bcast", distribution.shape[1] / ranks, calls=ranks)]

    def _prepare(self) -> None:
        self._bounds = self.part.partition.column_bounds
        self._whole = np.empty(self._bounds[-1], dtype=self.dtype)
        self._product = self._bound(self.part.matrix, self.configuration.format)

    @property
    def steps(self) -> Sequence[Step]:
        return [Step(COMMUNICATION, self._broadcast), Step(LOCAL, self._multiply)]

    def _broadcast(self, x: NDArray[Any], out: NDArray[Any]) -> None:
        for root in range(self.comm.size):
            part = self._whole[self._bounds[root] : self._bounds[root + 1]]
            if root == self.comm.rank:
                part[:] = x
            self.comm.Bcast(part, root=root)

    def _multiply(self, x: NDArray[Any], out: NDArray[Any]) -> None:
        self._product(self._whole, out)
