"""Partitions of one matrix by several methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sparsecast.matrices.partitioning.distribution import Distribution
from sparsecast.matrices.partitioning.methods import idle_ranks_note
from sparsecast.matrices.partitioning.partition import Partition
from sparsecast.results.columns import matrix_column
from sparsecast.system.tabular import Column, Columns, Table, lines_of
from sparsecast.system.texts import percent


@dataclass(frozen=True, slots=True)
class Partitioned:
    """A partition of a matrix, and what it makes of it."""

    partition: Partition
    distribution: Distribution
    partition_s: float | None  # seconds that the partition took; None where it was read


@dataclass(frozen=True, slots=True)
class Partitions:
    """Partitions of a matrix, least communication first, with the reasons why others were refused."""

    partitions: Sequence[Partitioned]
    refused: Mapping[str, str]
    method_notes: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the method, and on ranks without rows."""
        ranks, rows = self.distribution.ranks, self.distribution.shape[0]
        is_idle = any(partitioned.partition.parts > rows for partitioned in self.partitions)
        return (*self.method_notes, idle_ranks_note([ranks], rows)) if is_idle else self.method_notes

    @property
    def distribution(self) -> Distribution:
        """That of the first partition."""
        return self.partitions[0].distribution

    def table(self, title: str, value_bytes: int) -> Table:
        """Return a row for each partition with what single ranks exchange, for values of so many bytes."""
        rows: list[dict[str, Any]] = []
        for partitioned in self.partitions:
            of = partitioned.distribution
            exchanged = {
                "received_words": of.received_words,
                "messages": of.sent_messages + of.received_messages,
                "neighbours": of.received_messages,
            }
            rows.append(
                {
                    "distribution": of,
                    "partition_s": partitioned.partition_s,
                    "volume_bytes": value_bytes * of.volume_words,
                    **(dict.fromkeys(exchanged) if of.is_2d else exchanged),
                }
            )
        return Table(title, PARTITION, rows, (*_EXPLAINED, *lines_of(self.refused)))


_EXPLAINED = (
    "imbalance: most entries of a rank over their mean; words: entries of x that all ranks receive in",
    "one product of local 1D, in 2D of x and y by Bcast and Reduce; halo: the same over entries of x;",
    "messages: sent and received by a rank, neighbours: that it receives from; mean, most",
)


def _per_rank(key: str) -> Columns:
    """Return the mean and the largest of what single ranks exchange, None in 2D."""
    return (
        Column(f"{key}_mean", value=lambda row: None if row[key] is None else float(row[key].mean())),
        Column(f"{key}_most", value=lambda row: None if row[key] is None else int(row[key].max())),
    )


#: Of a row of the table of Partitions; what is of single ranks is null in 2D.
PARTITION: Columns = (
    Column("method", "method", "distribution.method"),
    Column("imbalance", "imbalance", "distribution.imbalance", "{:.3f}".format),
    Column("edge_cut", "edge cut", "distribution.edge_cut", about="null of a rectangular matrix and in 2D"),
    Column("volume_words", "words", "distribution.volume_words", about="of all ranks in one product"),
    Column("volume_bytes", "bytes"),
    Column("halo_share", "halo", "distribution.halo_share", percent),
    Column("empty_ranks", value=lambda row: int((row["distribution"].rows == 0).sum())),
    Column("rows_most", value=lambda row: int(row["distribution"].rows.max())),
    Column("nnz_most", value=lambda row: int(row["distribution"].nnz.max())),
    *_per_rank("received_words"),
    *_per_rank("messages"),
    *_per_rank("neighbours"),
    Column("", "most received", "received_words", lambda counts: f"{counts.max():,}"),
    *(
        Column("", key, key, lambda counts: f"{counts.mean():.1f}, {counts.max():,}")
        for key in ("messages", "neighbours")
    ),
    Column("partition_s", "to partition", about="null of a kept partition"),
)

#: The documents of commands, by how they are called.
DOCUMENTS: dict[str, Columns] = {
    "partition": (
        matrix_column("problem.name", "problem.sampled_structure"),
        Column("ranks"),
        Column("partitions", columns=PARTITION, about="least communication first"),
        Column("refused", about="{method: reason}"),
        Column("notes"),
    )
}
