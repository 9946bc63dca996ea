"""Local 1D: every rank gets the entries of x that it needs (Hossain and Saule, "Local 1D-Row SpMV").

As printed: first the entries whose x the rank owns, then the exchange, then the other entries. Nothing
overlaps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.distributed.communication import Exchange
from sparsecast.distributed.distributed_product import (
    COMMUNICATION,
    LOCAL,
    REMOTE,
    DistributedProduct,
    Step,
)
from sparsecast.distributed.halo import Halo, add_at
from sparsecast.distributed.layout import local_layout
from sparsecast.distributed.messages import wait_for
from sparsecast.distributed.products import PRODUCTS
from sparsecast.matrices.partitioning.distribution import Distribution
from sparsecast.matrices.partitioning.partition import Integers


@PRODUCTS.register("local-1d")
class Local1D(DistributedProduct):
    """Local product, exchange point to point, remote product."""

    has_remote = True

    @classmethod
    def communication(cls, distribution: Distribution) -> Sequence[Exchange]:
        return [Exchange.of(distribution)]

    @classmethod
    def buffer_words(cls, distribution: Distribution) -> Integers:
        return distribution.sent_words

    def _prepare(self) -> None:
        layout = local_layout(self.part)
        self._local = self._bound(layout.local, self.configuration.format)
        self._remote = self._bound(layout.remote, self.configuration.remote_format)
        self._halo = Halo(self.comm, layout, self.part.partition.column_bounds, self.dtype)
        self._remote_rows = layout.remote_rows
        self._sums = np.empty(len(layout.remote_rows), dtype=self.dtype)

    @property
    def steps(self) -> Sequence[Step]:
        return [
            Step(LOCAL, self._multiply),
            Step(COMMUNICATION, self._exchange),
            Step(REMOTE, self._add_remote),
        ]

    def _multiply(self, x: NDArray[Any], out: NDArray[Any]) -> None:
        self._local(x, out)

    def _exchange(self, x: NDArray[Any], out: NDArray[Any]) -> None:
        self._halo.pack(x)
        wait_for(self._halo.messages())

    def _add_remote(self, x: NDArray[Any], out: NDArray[Any]) -> None:
        if len(self._sums):
            self._remote(self._halo.received, self._sums)
            add_at(out, self._remote_rows, self._sums)
