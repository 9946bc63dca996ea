"""Requests of MPI, and arrays from each rank to each."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


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
    requests = [comm.Irecv(array, source=rank) for rank, array in incoming.items()]
    wait_for(requests + [comm.Isend(array, dest=rank) for rank, array in buffers.items() if len(array)])
    return incoming
