"""What a product communicates, as models of ranks read it: collectives and messages, in words of its type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sparsecast.matrices.partitioning.distribution import Distribution
from sparsecast.matrices.partitioning.partition import Integers

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

    @classmethod
    def of(cls, distribution: Distribution) -> Exchange:
        return cls(
            np.maximum(distribution.received_words, distribution.sent_words),
            np.maximum(distribution.received_messages, distribution.sent_messages),
            distribution.sent_words,
        )
