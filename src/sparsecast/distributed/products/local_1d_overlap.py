"""Local 1D with overlap: messages travel while the rank computes what it owns; not in the paper.

Receives are posted first, so that no message waits for its buffer. Requests are persistent: what is the same
in every product is given to MPI once. The result has the bits of local 1D.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from sparsecast.distributed.distributed_product import COMMUNICATION, LOCAL, REMOTE, Step
from sparsecast.distributed.messages import free, start, wait_for
from sparsecast.distributed.products import PRODUCTS
from sparsecast.distributed.products.local_1d import Local1D


@PRODUCTS.register("local-1d-overlap")
class Local1DOverlap(Local1D):
    """Receives and sends begun, local product, what came awaited, remote product."""

    overlaps = True

    def _prepare(self) -> None:
        super()._prepare()
        self._receives = [self.comm.Recv_init(buffer, source=rank) for rank, buffer in self._incoming]
        self._sends = [self.comm.Send_init(buffer, dest=rank) for rank, buffer in self._outgoing]
        weakref.finalize(self, free, self._receives + self._sends)

    @property
    def steps(self) -> Sequence[Step]:
        return [
            Step(COMMUNICATION, self._begin),
            Step(LOCAL, self._local),
            Step(COMMUNICATION, self._end),
            Step(REMOTE, self._add_remote),
        ]

    def _begin(self, x: NDArray[Any], out: NDArray[Any]) -> None:
        start(self._receives)
        self._pack(x)
        start(self._sends)

    def _end(self, x: NDArray[Any], out: NDArray[Any]) -> None:
        wait_for(self._receives + self._sends)
