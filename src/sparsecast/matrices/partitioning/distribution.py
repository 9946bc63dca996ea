"""Distribution: entries and messages of each rank of a partition."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, Self

import msgspec
import numpy as np

from sparsecast.errors import InputError
from sparsecast.matrices.partitioning.partition import Integers

#: The fields that have a number for each rank.
_PER_RANK = (
    *("rows", "columns", "local_nnz", "remote_nnz"),
    *("received_words", "sent_words", "received_messages", "sent_messages"),
)


@dataclass(frozen=True, eq=False)
class Distribution:
    """Entries and messages of each rank: all that a model of a distributed product reads of a partition.

    Arrays have an entry for each rank. In 2D, the parts of vectors belong to the ranks of the diagonal, and
    all entries of a block count as local, because its part of x is on the rank before the product.

    Attributes
    ----------
    method : str
        Of the Partition.
    shape : (int, int)
    rows : array
        Of the local matrix; in 2D of the block.
    columns : array
        Entries of x that the rank owns; in 2D columns of the block.
    local_nnz, remote_nnz : array
        Entries whose x the rank owns, and those whose x comes from other ranks.
    received_words, sent_words : array
        Entries of x that local 1D receives and sends in one product, counted once for a pair of ranks.
    received_messages, sent_messages : array
        Number of ranks they come from and go to.
    edge_cut : int or None
        Edges of the graph of A + A^T, without its diagonal, between different parts; None for a rectangular
        matrix and in 2D.
    is_estimate : bool
        Whether it was estimated from counts alone, without the entries.
    """

    method: str
    shape: tuple[int, int]
    rows: Integers
    columns: Integers
    local_nnz: Integers
    remote_nnz: Integers
    received_words: Integers
    sent_words: Integers
    received_messages: Integers
    sent_messages: Integers
    edge_cut: int | None = None
    is_estimate: bool = False

    @classmethod
    def of_blocks(cls, method: str, rows: Integers, columns: Integers, nnz: Integers, **more: Any) -> Self:
        """Return that of a 2D partition with blocks of so many rows, columns and entries."""
        parts, nothing = math.isqrt(len(rows)), np.zeros_like(nnz)
        shape = int(rows.sum()) // parts, int(columns.sum()) // parts
        return cls(method, shape, rows, columns, nnz, nothing, nothing, nothing, nothing, nothing, **more)

    @property
    def ranks(self) -> int:
        return len(self.rows)

    @property
    def nnz(self) -> Integers:
        return self.local_nnz + self.remote_nnz

    @property
    def imbalance(self) -> float:
        """Most entries of a rank over their mean; 1.0 without entries."""
        mean = float(self.nnz.mean())
        return float(self.nnz.max()) / mean if mean else 1.0

    @property
    def is_2d(self) -> bool:
        """Whether ranks have blocks; false for a single rank."""
        return self.ranks > 1 and int(self.rows.sum()) != self.shape[0]

    @property
    def volume_words(self) -> int:
        """Entries of vectors that all ranks together receive in one product, at the least.

        In 1D these are the words of local 1D. In 2D, each of the p - 1 other ranks of a row contributes its
        part of y to a Reduce, and those of a column receive its part of x in a Bcast.
        """
        if self.is_2d:
            return 2 * (math.isqrt(self.ranks) - 1) * self.shape[0]
        return int(self.received_words.sum())

    @property
    def halo_share(self) -> float | None:
        """Received entries of x over owned ones; None in 2D and without columns."""
        if self.is_2d or not self.shape[1]:
            return None
        return int(self.received_words.sum()) / self.shape[1]

    def to_dict(self) -> dict[str, Any]:
        stored = {field.name: getattr(self, field.name) for field in fields(self)}
        return stored | {name: stored[name].tolist() for name in _PER_RANK} | {"shape": list(self.shape)}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """Return the stored Distribution; refuse missing fields and numbers that contradict each other."""
        try:
            checked = msgspec.to_builtins(msgspec.convert(stored, _Stored))
        except msgspec.ValidationError as error:
            raise _refused(f"is damaged ({error})") from error
        arrays = {name: np.array(checked[name], dtype=np.int64) for name in _PER_RANK}
        distribution = cls(**{**checked, **arrays, "shape": tuple(checked["shape"])})
        contradiction = distribution._contradiction()
        if contradiction is not None:
            raise _refused(contradiction)
        return distribution

    def _contradiction(self) -> str | None:
        """Return in words the first contradiction between the numbers; None if there is none."""
        if len({len(getattr(self, name)) for name in _PER_RANK}) > 1 or not self.ranks:
            return "has not as many numbers of each kind as ranks"
        # Every row is on one rank, or in 2D on each of a row of p ranks.
        parts = math.isqrt(self.ranks)
        times = (1, parts) if parts**2 == self.ranks else (1,)
        counted = int(self.rows.sum()), int(self.columns.sum())
        if counted not in [(factor * self.shape[0], factor * self.shape[1]) for factor in times]:
            return f"has {counted[0]} rows and {counted[1]} columns for a shape of {self.shape}"
        if self.sent_words.sum() != self.received_words.sum():
            return f"has {self.sent_words.sum()} words sent and {self.received_words.sum()} received"
        if self.sent_messages.sum() != self.received_messages.sum():
            return f"has {self.sent_messages.sum()} messages sent and {self.received_messages.sum()} received"
        if max(self.received_messages.max(), self.sent_messages.max()) >= self.ranks:
            return f"has more messages of a rank than other ranks, {self.ranks - 1}"
        limits = (
            ("received_words", "remote_nnz"),
            ("received_messages", "received_words"),
            ("sent_messages", "sent_words"),
        )
        for name, limit in limits:
            above = np.flatnonzero(getattr(self, name) > getattr(self, limit))
            if len(above):
                return f"has more {name} than {limit} on rank {above[0]}"
        return None


#: A whole number that JSON represents exactly.
_Count = Annotated[int, msgspec.Meta(ge=0, lt=2**53)]

#: The fields as plain data.
_Stored = msgspec.defstruct(
    "_Stored",
    [
        *((name, list[_Count]) for name in _PER_RANK),
        ("method", str),
        ("shape", tuple[_Count, _Count]),
        ("edge_cut", _Count | None),
        ("is_estimate", bool),
    ],
)


def _refused(problem: str) -> InputError:
    return InputError(
        f"stored distribution {problem}: expected that of a partition; measure, or partition, again"
    )
