"""What every distributed product can do, and what it communicates.

Models of ranks read collectives and messages, in words of the type of the product.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.distributed.parts import RankPart
from sparsecast.distributed.processes import in_step
from sparsecast.matrices.partitioning.distribution import Distribution
from sparsecast.matrices.partitioning.partition import Integers
from sparsecast.operators.block_operator import Product
from sparsecast.records import Configuration

#: Which ranks call a collective together: all, or in 2D those of each row or each column of their grid.
ALL, ROW, COLUMN = "all", "row", "column"


@dataclass(frozen=True)
class Collective:
    """Calls of a collective of MPI, one after another.

    `kind` is that of a MicroBenchmark: ``"allgatherv"``, ``"reduce"`` or ``"bcast"``. `words` are those of
    the vector; in an allgatherv what each rank contributes. `group` is ALL, ROW or COLUMN: all rows, or all
    columns, call at once.
    """

    kind: str
    words: float
    group: str = ALL
    calls: int = 1


@dataclass(frozen=True, eq=False)
class Exchange:
    """Messages point to point. Arrays have an entry for each rank.

    `words` and `messages` are received or sent, whichever is more; `packed_words` are copied into buffers
    before they are sent.
    """

    kind: ClassVar[str] = "neighbour exchange"

    words: Integers
    messages: Integers
    packed_words: Integers


#: Names of the steps of a product, as in DistributedRecord.parts_s.
LOCAL, COMMUNICATION, REMOTE = "local", "communication", "remote"


class Step(NamedTuple):
    """One step of a product, and what it belongs to: a step may come in two halves of one name."""

    name: str
    run: Callable[[NDArray[Any], NDArray[Any]], None]


class DistributedProduct(ABC):
    """A product that all ranks do together: each gives its part of x and gets its part of y.

    It is made by all ranks together, too, and a format that refuses the part of one of them is refused on
    all. The results are the same bits in every run on the same ranks. A measurement may run its `steps` one
    by one. Models of ranks, and the choice among algorithms, read the attributes and methods of the class,
    without any rank.
    """

    is_2d: ClassVar[bool] = False  # whether it takes a 2D partition, whose number of ranks is a square
    #: Whether entries whose x other ranks own are a matrix of their own, with a format of its own.
    has_remote: ClassVar[bool] = False
    gathers_x: ClassVar[bool] = False  # whether each rank has all of x while it multiplies
    overlaps: ClassVar[bool] = False  # whether messages travel while the ranks compute
    is_default: ClassVar[bool] = True  # whether it is measured and forecast where no algorithm is named

    def __init__(self, comm: Any, part: RankPart, configuration: Configuration) -> None:
        self.comm, self.part, self.configuration = comm, part, configuration
        self.dtype = np.dtype(configuration.dtype)
        self._prepare()

    @classmethod
    @abstractmethod
    def communication(cls, distribution: Distribution) -> Sequence[Collective | Exchange]:
        """Return what one product communicates."""

    @classmethod
    def buffer_words(cls, distribution: Distribution) -> Integers:
        """Return the words of the buffers of each rank, without its y and the x that it multiplies."""
        return np.zeros(distribution.ranks, dtype=np.int64)

    @classmethod
    def x_words(cls, distribution: Distribution) -> Integers:
        if cls.gathers_x:
            return np.full(distribution.ranks, distribution.shape[1])
        return distribution.columns + distribution.received_words

    @classmethod
    def layout(cls) -> tuple[bool, bool, bool]:
        """Return what the matrices of a rank follow from: algorithms with equal ones have the same."""
        return cls.is_2d, cls.has_remote, cls.gathers_x

    @abstractmethod
    def _prepare(self) -> None:
        """Build and agree on all that products need; collective."""

    # Not kept: methods of this object in it would be a cycle of references, and the matrix would stay in
    # memory after its last use.
    @property
    @abstractmethod
    def steps(self) -> Sequence[Step]:
        """The steps that together are the product."""

    def __call__(self, x: NDArray[Any], out: NDArray[Any]) -> None:
        """Compute this rank's part of y from its part of x."""
        for step in self.steps:
            step.run(x, out)

    def _bound(self, A: csr_array[Any], format_name: str) -> Product:
        """Return the product of a matrix of this rank; a format that suits not all ranks is refused on all.

        The rule chooses the kernel, for one thread. A matrix without entries is nothing to store: its product
        sets y to zero, whatever the format.
        """
        from sparsecast.devices.binding import bind, prepared
        from sparsecast.devices.target import Target
        from sparsecast.features.analysis import structure
        from sparsecast.features.row_blocks import RowBlocks
        from sparsecast.machines.machine import PROCESSOR, detect

        dtype, bits = self.configuration.dtype, self.configuration.index_bits

        def bound() -> Product:
            if A.nnz == 0:
                return lambda x, out: out.fill(0)
            ready = prepared(A, dtype, bits)
            blocks = RowBlocks.of(structure(ready, threads=1, is_sampled=True))
            candidate = Target(PROCESSOR, dtype, bits, threads=1).candidate(format_name, blocks, detect())
            return bind(ready, candidate).product

        return in_step(self.comm, bound)
