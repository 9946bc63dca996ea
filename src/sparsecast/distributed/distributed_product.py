"""What every distributed product can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.distributed.binding import bound
from sparsecast.distributed.parts import RankPart
from sparsecast.distributed.processes import in_step
from sparsecast.operators.block_operator import Product
from sparsecast.records import Configuration

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
    by one.
    """

    #: Whether it takes a 2D partition.
    is_2d: ClassVar[bool] = False

    def __init__(self, comm: Any, part: RankPart, configuration: Configuration) -> None:
        self.comm, self.part, self.configuration = comm, part, configuration
        self.dtype = np.dtype(configuration.dtype)
        self._prepare()

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
        """Return the product of a matrix of this rank, in a format that suits those of all ranks."""
        return in_step(self.comm, lambda: bound(A, format_name, self.configuration))
