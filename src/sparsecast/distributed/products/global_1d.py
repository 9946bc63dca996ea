"""Global 1D: every rank has all of x (Hossain and Saule, section II.B, "Global 1D-Row SpMV").

The paper gathers y into the next x after the local product. Here x is gathered before it: the same sequence
in an iteration, and right for rectangular matrices, too, whose y is no x.
"""

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


@PRODUCTS.register("global-1d")
class Global1D(DistributedProduct):
    """Allgatherv of x, then the product of the rank's rows."""

    gathers_x = True

    @classmethod
    def communication(cls, distribution: Distribution) -> Sequence[Collective]:
        """Return Allgatherv, to which a rank contributes the mean part of x."""
        return [Collective("allgatherv", distribution.shape[1] / distribution.ranks)]

    def _prepare(self) -> None:
        bounds = self.part.partition.column_bounds
        self._whole = np.empty(bounds[-1], dtype=self.dtype)
        self._target = [self._whole, (np.diff(bounds), bounds[:-1])]
        self._product = self._bound(self.part.matrix, self.configuration.format)

    @property
    def steps(self) -> Sequence[Step]:
        return [Step(COMMUNICATION, self._gather), Step(LOCAL, self._multiply)]

    def _gather(self, x: NDArray[Any], out: NDArray[Any]) -> None:
        self.comm.Allgatherv(x, self._target)

    def _multiply(self, x: NDArray[Any], out: NDArray[Any]) -> None:
        self._product(self._whole, out)
