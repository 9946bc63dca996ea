"""Vectors that lie in parts on many ranks, each a NumPy array there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.distributed.messages import receive, send
from sparsecast.distributed.processes import agree, in_step
from sparsecast.errors import InputError
from sparsecast.matrices.partitioning.partition import Integers


@dataclass(frozen=True, eq=False)
class DistributedSpace:
    """The vectors of one side of a distributed operator.

    A vector is an array of `size` entries on each rank. In 2D several ranks have the same part, which counts
    once in sums over all.
    """

    comm: Any
    bounds: Integers  # of the parts, in the order of the partition
    parts: Integers  # the part that each rank has
    counts: bool  # whether this rank's part counts
    dtype: np.dtype[Any]  # of zeros
    order: Integers | None = None  # of the Partition, on rank 0

    @property
    def size(self) -> int:
        part = self.parts[self.comm.rank]
        return int(self.bounds[part + 1] - self.bounds[part])

    def zeros(self) -> NDArray[Any]:
        return np.zeros(self.size, dtype=self.dtype)

    host_zeros = zeros

    def arrays(self, x: NDArray[Any]) -> Sequence[NDArray[Any]]:
        return (x,)

    def dot(self, x: NDArray[Any], y: NDArray[Any]) -> Any:
        """Return the inner product of the whole vectors, the sum of conj(x) y, on every rank; collective."""
        local = np.vdot(x, y)
        if local.dtype.kind == "c" and self.dtype.kind != "c":
            raise InputError(
                f"vectors are complex on rank {self.comm.rank}: expected {self.dtype}, as their space; "
                f"multiply real and imaginary parts apart"
            )
        # One type on all ranks, whatever their vectors have: MPI would wait for ever, or add other bytes.
        sent = np.zeros(1, dtype=np.result_type(self.dtype, np.float64))
        if self.counts:
            sent[0] = local
        return self._summed(sent).astype(np.result_type(local, self.dtype))[0]

    def norm(self, x: NDArray[Any]) -> float:
        """Return the Euclidean norm of the whole vector on every rank; collective."""
        local = float(np.linalg.norm(x)) ** 2 if self.counts else 0.0
        return float(np.sqrt(self._summed(np.array([local]))[0]))

    def total(self, local: float) -> float:
        """Return the sum over the parts of what each rank has summed over its own; collective."""
        return float(self._summed(np.array([local if self.counts else 0.0]))[0])

    def scatter(self, x: NDArray[Any] | None) -> NDArray[Any]:
        """Return this rank's part of a vector that rank 0 has, in the order of the matrix; collective."""
        whole = in_step(self.comm, lambda: self._whole(x) if self.comm.rank == 0 else None)
        dtype = self.comm.bcast(whole.dtype if whole is not None else None)
        if whole is None:
            local = np.empty(self.size, dtype=dtype)
            receive(self.comm, local, 0)
            return local
        pieces = [whole[self.bounds[part] : self.bounds[part + 1]] for part in self.parts]
        for rank in range(1, self.comm.size):
            send(self.comm, np.ascontiguousarray(pieces[rank]), rank)
        return np.array(pieces[0])

    def gather(self, y: NDArray[Any]) -> NDArray[Any] | None:
        """Return the whole vector on rank 0, in the order of the matrix, None elsewhere; collective."""
        y = in_step(self.comm, lambda: self._own(y))
        agree(self.comm, "y of type", y.dtype.name, "convert it")
        if self.comm.rank:
            if self.counts:
                send(self.comm, np.ascontiguousarray(y), 0)
            return None
        whole = np.empty(self.bounds[-1], dtype=y.dtype)
        side = len(self.bounds) - 1
        for part in range(side):
            place = whole[self.bounds[part] : self.bounds[part + 1]]
            # The rank on the diagonal in 2D.
            owner = part if side == self.comm.size else part * side + part
            if owner:
                receive(self.comm, place, owner)
            else:
                place[:] = y
        if self.order is None:
            return whole
        ordered = np.empty_like(whole)
        ordered[self.order] = whole
        return ordered

    def _whole(self, x: NDArray[Any] | None) -> NDArray[Any]:
        array, length = np.asarray(x), int(self.bounds[-1])
        if array.shape != (length,) or array.dtype.kind not in "biufc":
            raise InputError(
                f"x is {array.dtype} of shape {array.shape} on rank 0: expected numbers of shape "
                f"({length},), the whole vector; give it there"
            )
        # MPI has no half precision, and no bytes in the other order.
        array = array.astype(np.result_type(array.dtype, np.float32), copy=False)
        return array if self.order is None else array[self.order]

    def _own(self, y: NDArray[Any]) -> NDArray[Any]:
        array = np.asarray(y)
        if array.shape != (self.size,):
            raise InputError(
                f"y has shape {array.shape}: expected ({self.size},), the rank's part; give what "
                f"op @ x returned"
            )
        return array

    def _summed(self, local: NDArray[Any]) -> NDArray[Any]:
        total = np.empty_like(local)
        self.comm.Allreduce(local, total)
        return total
