"""Arrays between ranks, in messages whose counts every MPI library can express.

Before version 4 of MPI, a count is an integer of 32 bits. Longer arrays go in pieces, one after the other;
messages between two ranks stay in order, so pieces need no numbers.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Most entries of one message.
LARGEST_COUNT = 2**31 - 1


def pieces(length: int, largest: int | None = None) -> Iterator[slice]:
    """Give slices that together are `length` entries, each short enough for one message."""
    step = LARGEST_COUNT if largest is None else largest
    for first in range(0, length, step):
        yield slice(first, min(first + step, length))


def send(comm: Any, array: NDArray[Any], rank: int) -> None:
    """Send an array to a rank, which calls `receive` with its length."""
    for piece in pieces(len(array)):
        comm.Send(array[piece], dest=rank)


def receive(comm: Any, array: NDArray[Any], rank: int) -> None:
    """Fill an array with what `send` sent."""
    for piece in pieces(len(array)):
        comm.Recv(array[piece], source=rank)


def wait_for(requests: Sequence[Any]) -> None:
    if requests:
        type(requests[0]).Waitall(requests)


def start(requests: Sequence[Any]) -> None:
    if requests:
        type(requests[0]).Startall(requests)


def free(owned: Sequence[Any]) -> None:
    """Give persistent requests or communicators back to MPI, which else complains of them at the end.

    Nothing is left to do where the program has ended MPI itself.
    """
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is not None and mpi.Is_finalized():
        return
    for each in owned:
        each.Free()


def exchanged(
    comm: Any, outgoing: Mapping[int, NDArray[Any]], dtype: np.dtype[Any] | type
) -> dict[int, NDArray[Any]]:
    """Send each rank its array, and return what came, by the rank that sent it, in ascending order.

    Ranks that get nothing may be missing; `dtype` is that of all arrays.
    """
    sent = np.zeros(comm.size, dtype=np.int64)
    for rank, array in outgoing.items():
        sent[rank] = len(array)
    received = np.empty(comm.size, dtype=np.int64)
    comm.Alltoall(sent, received)
    incoming = {int(rank): np.empty(received[rank], dtype=dtype) for rank in np.flatnonzero(received)}
    buffers = {rank: np.ascontiguousarray(array, dtype=dtype) for rank, array in outgoing.items()}
    requests = [
        comm.Irecv(array[piece], source=rank)
        for rank, array in incoming.items()
        for piece in pieces(len(array))
    ]
    requests += [
        comm.Isend(array[piece], dest=rank) for rank, array in buffers.items() for piece in pieces(len(array))
    ]
    wait_for(requests)
    return incoming
