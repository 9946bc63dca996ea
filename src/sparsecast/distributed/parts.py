"""The part of a matrix that a rank has, and how it gets there: from rank 0, or from the transpose.

What a rank computes and what it needs of others in a local 1D product is known without a message.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from sparsecast.distributed.messages import exchanged
from sparsecast.matrices.partitioning.partition import Integers, Partition
from sparsecast.system.integers import index_dtype


@dataclass(frozen=True, eq=False)
class RankPart:
    """The entries of a rank.

    `matrix` has in 1D the rows of the rank with all columns of the matrix, in 2D its block. The partition has
    its `order` on rank 0 alone.
    """

    partition: Partition
    rank: int
    matrix: csr_array[Any]


def block_bounds(partition: Partition, rank: int) -> tuple[int, int, int, int]:
    """Return first row, end of rows, first column and end of columns of what a rank has."""
    row, column = divmod(rank, partition.parts) if partition.is_2d else (rank, 0)
    rows = partition.row_bounds[row], partition.row_bounds[row + 1]
    columns = partition.column_bounds[[column, column + 1 if partition.is_2d else -1]]
    return int(rows[0]), int(rows[1]), int(columns[0]), int(columns[1])


def scattered(comm: Any, A: csr_array[Any] | None, partition: Partition | None) -> RankPart:
    """Return the part of each rank of a matrix that rank 0 holds; no other rank holds more than its part.

    The partition is that of rank 0, which alone keeps its order.
    """
    if A is None or partition is None:
        shared, dtype, index = comm.bcast(None)
        first, end, left, right = block_bounds(shared, comm.rank)
        nnz = np.empty(1, dtype=np.int64)
        comm.Recv(nnz, source=0)
        block = csr_array((end - first, right - left), dtype=dtype)
        block.indptr, block.indices = np.empty(end - first + 1, dtype=index), np.empty(nnz[0], dtype=index)
        block.data = np.empty(nnz[0], dtype=dtype)
        for array in (block.indptr, block.indices, block.data):
            comm.Recv(array, source=0)
        return RankPart(shared, comm.rank, block)
    whole = partition.renumbered(A)
    comm.bcast((replace(partition, order=None), whole.dtype, whole.indices.dtype))
    for rank in range(1, comm.size):
        block = block_of(whole, partition, rank)
        comm.Send(np.array([block.nnz], dtype=np.int64), dest=rank)
        for array in (block.indptr, block.indices, block.data):
            comm.Send(np.ascontiguousarray(array), dest=rank)
    return RankPart(partition, 0, block_of(whole, partition, 0))


def block_of(whole: csr_array[Any], partition: Partition, rank: int) -> csr_array[Any]:
    """Return what a rank has of a renumbered matrix, with the index type of the matrix."""
    first, end, left, right = block_bounds(partition, rank)
    start, stop = int(whole.indptr[first]), int(whole.indptr[end])
    rows = csr_array((end - first, whole.shape[1]), dtype=whole.dtype)
    rows.indptr = (whole.indptr[first : end + 1] - whole.indptr[first]).astype(whole.indices.dtype)
    rows.indices, rows.data = whole.indices[start:stop], whole.data[start:stop]
    if (left, right) == (0, whole.shape[1]):
        return rows
    block = rows[:, left:right]
    block.indptr, block.indices = (
        array.astype(whole.indices.dtype, copy=False) for array in (block.indptr, block.indices)
    )
    return block


def transposed(comm: Any, part: RankPart) -> RankPart:
    """Return the part of the transpose that a rank has, whose rows are partitioned as our columns."""
    turned = replace(
        part.partition, row_bounds=part.partition.column_bounds, column_bounds=part.partition.row_bounds
    )
    first, _, left, _ = block_bounds(part.partition, part.rank)
    entries = coo_array(part.matrix)
    rows, columns = entries.col.astype(np.int64) + left, entries.row.astype(np.int64) + first
    # The rank's own entries come in the order of its rows, and ranks in the order of theirs.
    return from_entries(comm, rows, columns, entries.data, turned)


def from_entries(
    comm: Any, rows: NDArray[Any], columns: NDArray[Any], values: NDArray[Any], partition: Partition
) -> RankPart:
    """Send entries that lie anywhere to the ranks that have them, and return what comes here.

    Rows and columns are those of the renumbered matrix. Entries of one place are added up.
    """
    owners = np.searchsorted(partition.row_bounds, rows, side="right") - 1
    if partition.is_2d:
        of_columns = np.searchsorted(partition.column_bounds, columns, side="right") - 1
        owners = owners * partition.parts + of_columns
    order = np.argsort(owners, kind="stable")
    places = np.searchsorted(owners[order], np.arange(comm.size + 1))
    here = []
    for array in (rows, columns, values):
        outgoing = {k: array[order[places[k] : places[k + 1]]] for k in np.unique(owners).tolist()}
        incoming = exchanged(comm, outgoing, array.dtype)
        here.append(np.concatenate([np.empty(0, dtype=array.dtype), *incoming.values()]))
    first, end, left, right = block_bounds(partition, comm.rank)
    index = index_dtype(right - left, end - first, len(here[2]))
    where = (here[0] - first).astype(index), (here[1] - left).astype(index)
    matrix = csr_array(coo_array((here[2], where), shape=(end - first, right - left)))
    return RankPart(partition, comm.rank, matrix)


@dataclass(frozen=True, eq=False)
class LocalLayout:
    """The rows of a rank in two matrices, by who owns the entries of x (Hossain and Saule, section II.B)."""

    local: csr_array[Any]  # the entries whose x this rank owns; column 0 is the first that it owns
    #: The others, without the rows that have none; column k is the column needed[k] of the matrix.
    remote: csr_array[Any]
    remote_rows: Integers  # the rows of `remote`, as rows of the rank
    needed: Integers  # columns of the matrix, ascending, whose x comes from others
    sources: dict[int, slice]  # ranks that own those, and where in `needed`


def local_layout(part: RankPart) -> LocalLayout:
    rows, bounds = part.matrix, part.partition.column_bounds
    first, end = int(bounds[part.rank]), int(bounds[part.rank + 1])
    is_local = (rows.indices >= first) & (rows.indices < end)
    before = np.concatenate(([0], np.cumsum(is_local)))[rows.indptr]
    local = _csr(rows.data[is_local], rows.indices[is_local] - first, before, end - first)

    columns = rows.indices[~is_local]
    needed = np.unique(columns).astype(np.int64)
    lengths = np.diff(rows.indptr - before)
    remote_rows = np.flatnonzero(lengths)
    indptr = np.concatenate(([0], np.cumsum(lengths[remote_rows])))
    remote = _csr(rows.data[~is_local], np.searchsorted(needed, columns), indptr, len(needed))

    places = np.searchsorted(needed, bounds)
    sources = {
        int(rank): slice(*map(int, places[rank : rank + 2])) for rank in np.flatnonzero(np.diff(places))
    }
    return LocalLayout(local, remote, remote_rows, needed, sources)


def _csr(data: NDArray[Any], columns: NDArray[Any], indptr: NDArray[Any], width: int) -> csr_array[Any]:
    """Return a matrix with indices as narrow as they can be."""
    index = index_dtype(width, len(data))
    made = csr_array((len(indptr) - 1, width), dtype=data.dtype)
    made.data, made.indices, made.indptr = data, columns.astype(index), indptr.astype(index)
    return made
