"""Distribution: what a partition makes of a matrix, rank by rank."""

from __future__ import annotations

from dataclasses import dataclass

from sparsecast.partitioning.partition import Integers


@dataclass(frozen=True, eq=False)
class Distribution:
    """Entries and messages of each rank: all that a model of a distributed product reads of a partition.

    Arrays have an entry for each rank. In 2D the parts of vectors belong to the ranks of the diagonal. All
    entries of a block count as local there, because its part of x is on the rank before the product.

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
        Entries of x that local 1D receives and sends in one product, each counted once for a pair of ranks.
    received_messages, sent_messages : array
        Ranks from which and to which they go.
    edge_cut : int or None
        Edges of the graph of A + A^T, without its diagonal, between different parts; None for a rectangular
        matrix and in 2D.
    is_estimate : bool
        Whether it follows from counts alone instead of the entries.
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

    @property
    def ranks(self) -> int:
        """Number of ranks."""
        return len(self.rows)

    @property
    def nnz(self) -> Integers:
        """Entries of each rank."""
        return self.local_nnz + self.remote_nnz

    @property
    def imbalance(self) -> float:
        """Most entries of a rank over their mean; 1.0 without entries."""
        mean = float(self.nnz.mean())
        return float(self.nnz.max()) / mean if mean else 1.0
