"""Local 1D: every rank gets the entries of x that it needs (Hossain and Saule, "Local 1D-Row SpMV").

As printed: first the entries whose x the rank owns, then the exchange, then the other entries. Nothing
overlaps. Ranks exchange the entries of x that they need of each other point to point.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.distributed.distributed_product import (
    COMMUNICATION,
    LOCAL,
    REMOTE,
    DistributedProduct,
    Exchange,
    Step,
)
from sparsecast.distributed.messages import exchanged, wait_for
from sparsecast.distributed.parts import local_layout
from sparsecast.distributed.products import PRODUCTS
from sparsecast.matrices.partitioning.distribution import Distribution
from sparsecast.matrices.partitioning.partition import Integers
from sparsecast.system.jit import njit


# Copies at the speed of compiled loops: NumPy's take, and its addition by index, took three times as long.
@njit(nogil=True, cache=True)
def _pick(source: NDArray[Any], places: Integers, out: NDArray[Any]) -> None:
    for i in range(len(places)):
        out[i] = source[places[i]]


@njit(nogil=True, cache=True)
def _add_at(out: NDArray[Any], places: Integers, sums: NDArray[Any]) -> None:
    """Add sums[i] to out[places[i]]."""
    for i in range(len(places)):
        out[places[i]] += sums[i]


@PRODUCTS.register("local-1d")
class Local1D(DistributedProduct):
    """Local product, exchange point to point, remote product."""

    has_remote = True

    @classmethod
    def communication(cls, distribution: Distribution) -> Sequence[Exchange]:
        words = np.maximum(distribution.received_words, distribution.sent_words)
        messages = np.maximum(distribution.received_messages, distribution.sent_messages)
        return [Exchange(words, messages, distribution.sent_words)]

    @classmethod
    def buffer_words(cls, distribution: Distribution) -> Integers:
        return distribution.sent_words

    def _prepare(self) -> None:
        """Bind both matrices, and learn once what the others need of x."""
        layout, bounds = local_layout(self.part), self.part.partition.column_bounds
        self._local = self._bound(layout.local, self.configuration.format)
        self._remote = self._bound(layout.remote, self.configuration.remote_format)
        self._remote_rows = layout.remote_rows
        self._sums = np.empty(len(layout.remote_rows), dtype=self.dtype)
        places = {rank: layout.needed[place] - bounds[rank] for rank, place in layout.sources.items()}
        wanted = exchanged(self.comm, places, np.int64)
        self._picked = np.concatenate([np.empty(0, dtype=np.int64), *wanted.values()])
        self._sent = np.empty(len(self._picked), dtype=self.dtype)
        self._received = np.empty(len(layout.needed), dtype=self.dtype)  # x of the columns needed
        #: Ranks and the slices of the buffers that come from them and go to them.
        self._incoming = [(rank, self._received[place]) for rank, place in layout.sources.items()]
        ends = np.cumsum([len(places) for places in wanted.values()])[:-1]
        self._outgoing = list(zip(wanted, np.split(self._sent, ends), strict=False))

    @property
    def steps(self) -> Sequence[Step]:
        return [
            Step(LOCAL, self._local),
            Step(COMMUNICATION, self._exchange),
            Step(REMOTE, self._add_remote),
        ]

    def _pack(self, x: NDArray[Any]) -> None:
        """Copy what others need into the buffer that is sent; messages of before must have left it."""
        if len(self._sent):
            _pick(x, self._picked, self._sent)

    def _exchange(self, x: NDArray[Any], out: NDArray[Any]) -> None:
        self._pack(x)
        requests = [self.comm.Irecv(buffer, source=rank) for rank, buffer in self._incoming]
        requests += [self.comm.Isend(buffer, dest=rank) for rank, buffer in self._outgoing]
        wait_for(requests)

    def _add_remote(self, x: NDArray[Any], out: NDArray[Any]) -> None:
        if len(self._sums):
            self._remote(self._received, self._sums)
            _add_at(out, self._remote_rows, self._sums)
