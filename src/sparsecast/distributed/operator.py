"""The operator of a matrix whose parts lie on many ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.distributed.distributed_product import DistributedProduct
from sparsecast.distributed.parts import RankPart, transposed
from sparsecast.distributed.spaces import DistributedSpace
from sparsecast.errors import InputError
from sparsecast.operators.block_operator import BlockOperator, RowProduct
from sparsecast.records import Configuration


class Products:
    """The product of a matrix and, from its first use on, that of its transpose.

    `make` makes the product of a RankPart; collective.
    """

    def __init__(self, product: DistributedProduct, make: Callable[[RankPart], DistributedProduct]) -> None:
        self._product, self._make = product, make
        self._transpose: DistributedProduct | None = None

    def get(self, transposes: bool) -> DistributedProduct:
        """Return one of both; collective when the transpose is first asked for."""
        if not transposes:
            return self._product
        if self._transpose is None:
            self._transpose = self._make(transposed(self._product.comm, self._product.part))
        return self._transpose


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

    def __init__(self, products: Products, transposes: bool = False, conjugates: bool = False) -> None:
        self._products, self._transposes, self._conjugates = products, transposes, conjugates
        self.product = products.get(transposes)
        self.shape, self.dtype = self.product.part.partition.shape, self.product.dtype
        self.domain = self._space(self.product.part.partition.column_bounds)
        self.range = self._space(self.product.part.partition.row_bounds)
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
        return DistributedOperator(self._products, not self._transposes, self._conjugates)

    @property
    def H(self) -> DistributedOperator:  # noqa: N802 - as SciPy's
        """The operator of the conjugate transpose; made at first use, by all ranks together."""
        is_complex = self.dtype.kind == "c"
        return DistributedOperator(self._products, not self._transposes, is_complex and not self._conjugates)

    def conjugate(self) -> DistributedOperator:
        """Return the operator of the conjugate values, itself where they are real."""
        if self.dtype.kind != "c":
            return self
        return DistributedOperator(self._products, self._transposes, not self._conjugates)

    def scatter(self, x: NDArray[Any] | None) -> NDArray[Any]:
        """Return this rank's part of an x that rank 0 has whole; collective."""
        return self.domain.scatter(x)

    def gather(self, y: NDArray[Any]) -> NDArray[Any] | None:
        """Return the whole y on rank 0, None elsewhere; collective."""
        return self.range.gather(y)

    def _space(self, bounds: NDArray[np.int64]) -> DistributedSpace:
        part, comm = self.product.part, self.product.comm
        parts = np.arange(comm.size) % part.partition.parts
        return DistributedSpace(comm, bounds, parts, part.counts, self.dtype, part.partition.order)
