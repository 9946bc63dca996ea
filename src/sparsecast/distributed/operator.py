"""The operator of a matrix whose parts lie on many ranks, and the space of its vectors.

A vector lies in parts, each a NumPy array on its rank.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.distributed.distributed_product import DistributedProduct
from sparsecast.distributed.processes import agree, in_step
from sparsecast.errors import InputError
from sparsecast.matrices.partitioning.partition import Integers
from sparsecast.operators.block_operator import BlockOperator, LocalSpace, RowProduct
from sparsecast.records import Configuration


@dataclass(frozen=True, eq=False)
class DistributedSpace(LocalSpace):
    """The vectors of one side of a distributed operator.

    A vector is an array of `size` entries on each rank. In 2D several ranks have the same part, which counts
    once in sums over all.
    """

    __eq__, __hash__ = object.__eq__, object.__hash__  # the same on all ranks, whatever their sizes

    comm: Any
    bounds: Integers  # of the parts, in the order of the partition
    order: Integers | None  # of the Partition, on rank 0

    @classmethod
    def of(
        cls, comm: Any, bounds: Integers, order: Integers | None, dtype: np.dtype[Any]
    ) -> DistributedSpace:
        """Return the space of vectors with these bounds of their parts."""
        part = comm.rank % (len(bounds) - 1)
        return cls(int(bounds[part + 1] - bounds[part]), dtype, comm, bounds, order)

    @property
    def owners(self) -> range:
        """The ranks whose parts together are the vector: all, in 2D those of the diagonal."""
        parts = len(self.bounds) - 1
        return range(0, self.comm.size, 1 if parts == self.comm.size else parts + 1)

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
        if self.comm.rank in self.owners:
            sent[0] = local
        summed = np.empty_like(sent)
        self.comm.Allreduce(sent, summed)
        return summed.astype(np.result_type(local, self.dtype))[0]

    def norm(self, x: NDArray[Any]) -> float:
        """Return the Euclidean norm of the whole vector on every rank; collective."""
        return float(np.sqrt(self.total(float(np.linalg.norm(x)) ** 2)))

    def total(self, local: float) -> float:
        """Return the sum over the parts of what each rank has summed over its own; collective."""
        summed, counts = np.empty(1), self.comm.rank in self.owners
        self.comm.Allreduce(np.array([local if counts else 0.0], dtype=float), summed)
        return float(summed[0])

    def scatter(self, x: NDArray[Any] | None) -> NDArray[Any]:
        """Return this rank's part of a vector that rank 0 has, in the order of the matrix; collective."""
        whole = in_step(self.comm, lambda: self._whole(x) if self.comm.rank == 0 else None)
        dtype = self.comm.bcast(whole.dtype if whole is not None else None)
        if whole is None:
            local = np.empty(self.size, dtype=dtype)
            self.comm.Recv(local, source=0)
            return local
        parts = np.split(whole, self.bounds[1:-1])
        for rank in range(1, self.comm.size):
            self.comm.Send(np.ascontiguousarray(parts[rank % len(parts)]), dest=rank)
        return np.array(parts[0])

    def gather(self, y: NDArray[Any]) -> NDArray[Any] | None:
        """Return the whole vector on rank 0, in the order of the matrix, None elsewhere; collective."""
        y = in_step(self.comm, lambda: self._own(y))
        agree(self.comm, "y of type", y.dtype.name, "convert it")
        if self.comm.rank:
            if self.comm.rank in self.owners:
                self.comm.Send(np.ascontiguousarray(y), dest=0)
            return None
        whole = np.empty(self.bounds[-1], dtype=y.dtype)
        for owner, place in zip(self.owners, np.split(whole, self.bounds[1:-1]), strict=True):
            if owner:
                self.comm.Recv(place, source=owner)
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


class DistributedOperator:
    """y = A x on many ranks: a solver runs on each of them, and finds an Operator.

    Vectors are NumPy arrays of the rank's part. Every call that computes is collective: all ranks make it,
    in the same order and with the same types. What is wrong with a vector of one rank is raised there;
    `together` ends the others.

    Attributes
    ----------
    shape : (int, int)
        Of the whole matrix.
    dtype : dtype
    domain, range : DistributedSpace
        Of x and of y.
    product : DistributedProduct
    """

    def __init__(
        self,
        product_of: Callable[[bool], DistributedProduct],
        transposes: bool = False,
        conjugates: bool = False,
    ) -> None:
        self._product_of, self._transposes, self._conjugates = product_of, transposes, conjugates
        self.product = product_of(transposes)
        partition = self.product.part.partition
        self.shape, self.dtype = partition.shape, self.product.dtype
        self.domain, self.range = (
            DistributedSpace.of(self.product.comm, bounds, partition.order, self.dtype)
            for bounds in (partition.column_bounds, partition.row_bounds)
        )
        # Its checks and conversions are those of one process, and so is how it conjugates.
        sizes = self.range.size, self.domain.size
        local = BlockOperator(sizes, self.dtype, [RowProduct(0, sizes[0], self.product)])
        self._local = local.conjugate() if conjugates else local

    @property
    def configuration(self) -> Configuration:
        return self.product.configuration

    def matvec(self, x: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return this rank's part of A x; x, out and types as in `BlockOperator.matvec`.

        But a real matrix takes no complex x: the ranks that have one would do two products, and wait for
        those that do one.

        Raises
        ------
        InputError
            If `x` or `out` is not this rank's part of a vector, or `x` is complex and the matrix is not.
        """
        shape, size, comm = np.shape(x), self.domain.size, self.product.comm
        if self.dtype.kind != "c" and np.iscomplexobj(x):
            raise InputError(
                f"x is complex on rank {comm.rank}: expected a real one for a {self.dtype} matrix on "
                f"many ranks; multiply real and imaginary parts apart, or compile for complex values"
            )
        if shape not in ((size,), (size, 1)):
            raise InputError(
                f"x has shape {shape} on rank {comm.rank} of {comm.size}: expected ({size},), its part of "
                f"the {self.shape[1]:,} entries; take it from op.scatter, or make it by op.domain.zeros"
            )
        return self._local.matvec(x, out)

    def rmatvec(self, x: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Return this rank's part of A^H x."""
        return self.H.matvec(x, out)

    def __matmul__(self, x: NDArray[Any]) -> NDArray[Any]:
        return self.matvec(x)

    @property
    def T(self) -> DistributedOperator:  # noqa: N802 - as SciPy's
        """The operator of the transpose, which is made and kept at first use, by all ranks together.

        Its rows are partitioned as our columns, and it has the same formats.
        """
        return DistributedOperator(self._product_of, not self._transposes, self._conjugates)

    @property
    def H(self) -> DistributedOperator:  # noqa: N802 - as SciPy's
        """The operator of the conjugate transpose; made at first use, by all ranks together."""
        return self.conjugate().T

    def conjugate(self) -> DistributedOperator:
        """Return the operator of the conjugate values, itself where they are real."""
        if self.dtype.kind != "c":
            return self
        return DistributedOperator(self._product_of, self._transposes, not self._conjugates)

    def scatter(self, x: NDArray[Any] | None) -> NDArray[Any]:
        """Return this rank's part of an x that rank 0 has whole; collective."""
        return self.domain.scatter(x)

    def gather(self, y: NDArray[Any]) -> NDArray[Any] | None:
        """Return the whole y on rank 0, None elsewhere; collective."""
        return self.range.gather(y)
