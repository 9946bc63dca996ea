"""The data of many processes that packages exchange: Configuration, MicroBenchmark, DistributedRecord.

Units are SI and part of the name. A missing value is ``None``, never 0 or a default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, Self

import msgspec

from sparsecast.records.product_records import VALUE_BYTES

#: Kinds of micro-benchmarks of a machine with ranks.
MICROBENCHMARK_KINDS = (
    "fma",
    "triad",
    "ping-pong",
    "allgatherv",
    "reduce",
    "bcast",
    "neighbour exchange",
)


@dataclass(frozen=True, slots=True)
class Configuration:
    """One way to do a product on many ranks."""

    algorithm: str  # one of `sparsecast.distributed.products`
    #: format, remote_format: of the entries whose x the rank owns, and of those whose x comes from other
    #: ranks; equal for an algorithm with one matrix.
    format: str
    remote_format: str
    partition: str  # method of the Partition
    ranks: int
    nodes: int
    dtype: str = "float64"
    index_bits: int = 32  # of the column indices of the local matrices: 32 or 64

    @property
    def value_bytes(self) -> int:
        return VALUE_BYTES[self.dtype]

    @property
    def index_bytes(self) -> int:
        return self.index_bits // 8


@dataclass(frozen=True, slots=True)
class MicroBenchmark:
    """One measured speed of a machine with several ranks (Hossain and Saule, section III.C)."""

    kind: str  # one of MICROBENCHMARK_KINDS
    #: ranks, nodes: number of participants. A ping-pong has 2 ranks, on one node or on two.
    ranks: int
    nodes: int
    #: ``"triad"``: moved by one call of a rank, 3 arrays, while all ranks do the same. ``"ping-pong"``: of
    #: the message. ``"allgatherv"``: contributed by each rank. ``"reduce"``, ``"bcast"``: of the vector.
    #: ``"neighbour exchange"``: to each neighbour. ``"fma"``: 0.
    bytes: int
    neighbours: int | None  # number of receivers of each rank in a neighbour exchange; None for other kinds
    #: Seconds per call until the last rank is done; one way for a ping-pong; of one fused multiply-add for
    #: ``"fma"``.
    time_s: float
    noise: float | None
    is_oversubscribed: bool  # whether more ranks than cores ran
    measured_at: str
    version: str

    @property
    def key(self) -> tuple[str, int, int, int, int | None]:
        """The key of a MicroBenchmark: a new one replaces an old one of the same key."""
        return self.kind, self.ranks, self.nodes, self.bytes, self.neighbours

    @property
    def impossible(self) -> dict[str, float]:
        """Impossible figures, by name."""
        return {} if 0 < self.time_s < inf else {"time_s": self.time_s}


@dataclass(frozen=True, slots=True)
class DistributedRecord:
    """One measurement of a Configuration on a matrix; other fields are as in a Record."""

    configuration: Configuration
    matrix: str
    nnz: int
    distribution: Mapping[str, Any]  # the Distribution of the matrix, as plain data
    samples_s: tuple[float, ...]  # seconds per product until the last rank is done, in the order taken
    time_s: float
    spread: float | None
    noise: float | None
    error: float | None
    is_oversubscribed: bool  # whether more ranks than cores ran
    measured_at: str
    version: str
    #: Seconds in ``"local"``, ``"communication"`` and ``"remote"``, by rank; empty if not measured.
    parts_s: Mapping[str, list[float]] = field(default_factory=dict)
    suite: str = "user"
    deviation: float | None = None  # of the row lengths of the matrix; None if unknown

    @property
    def impossible(self) -> dict[str, float]:
        """Impossible figures, by name."""
        return {} if 0 < self.time_s < inf else {"time_s": self.time_s}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """Return the record of a `dataclasses.asdict`; a msgspec.ValidationError if it is something else."""
        return msgspec.convert(stored, cls)
