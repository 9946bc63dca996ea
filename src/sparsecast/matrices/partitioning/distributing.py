"""Counts the entries and messages of each rank of a partition."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.errors import InputError
from sparsecast.matrices.partitioning.distribution import Distribution
from sparsecast.matrices.partitioning.partition import Integers, Partition
from sparsecast.system.jit import njit


def distribute(A: csr_array[Any], partition: Partition) -> Distribution:
    """Return the Distribution of a partition, counted entry by entry; stored zeros and duplicates count."""
    if not partition.is_sound:
        raise InputError(
            "a partition whose bounds or order are none: expected sound ones; partition the matrix"
        )
    if A.shape != partition.shape:
        raise InputError(
            f"partition of {partition.shape[0]:,} x {partition.shape[1]:,}: expected that of a matrix of "
            f"{A.shape[0]:,} x {A.shape[1]:,}; partition this matrix"
        )
    rows, cols = A.shape
    owners = _owners(partition.column_bounds, partition.order)
    if partition.is_2d:
        parts, row_parts = partition.parts, _owners(partition.row_bounds, partition.order)
        block_rows = np.repeat(np.diff(partition.row_bounds), parts)
        block_columns = np.tile(np.diff(partition.column_bounds), parts)
        nnz = _block_counts(A.indptr, A.indices, row_parts, owners, parts).ravel()
        return Distribution.of_blocks(partition.method, block_rows, block_columns, nnz)
    order = np.arange(rows) if partition.order is None else partition.order
    counts = _counts(A.indptr, A.indices, order, partition.row_bounds, owners)
    local, remote, received, sent, came_from, went_to = counts
    if rows == cols and not A.has_canonical_format:  # the edges are counted in sorted rows, each once
        stored = int(A.indptr[-1])
        arrays = np.ones(stored, dtype=bool), A.indices[:stored].copy(), A.indptr.copy()
        A = csr_array(arrays, shape=A.shape)
        A.sum_duplicates()
    return Distribution(
        method=partition.method,
        shape=partition.shape,
        rows=np.diff(partition.row_bounds),
        columns=np.diff(partition.column_bounds),
        local_nnz=local,
        remote_nnz=remote,
        received_words=received,
        sent_words=sent,
        received_messages=came_from,
        sent_messages=went_to,
        edge_cut=int(_edges_between(A.indptr, A.indices, owners)) if rows == cols else None,
    )


def _owners(bounds: Integers, order: Integers | None) -> NDArray[np.int32]:
    """Return the part of each row, or column, in the order of the matrix."""
    part_of = np.repeat(np.arange(len(bounds) - 1, dtype=np.int32), np.diff(bounds))
    if order is None:
        return part_of
    owners = np.empty_like(part_of)
    owners[order] = part_of
    return owners


@njit(cache=True, nogil=True)
def _counts(
    indptr: NDArray[Any], indices: NDArray[Any], order: Integers, bounds: Integers, owners: NDArray[np.int32]
) -> Integers:
    """Return the counts of a Distribution, in its order, one row of numbers each."""
    ranks = len(bounds) - 1
    counts = np.zeros((6, ranks), dtype=np.int64)
    local, remote, received, sent, came_from, went_to = counts
    # The last rank that needed an entry of x, and any entry of a rank: each counts once for a pair of ranks.
    last_reader = np.full(len(owners), -1, dtype=np.int32)
    last_reader_of_rank = np.full(ranks, -1, dtype=np.int32)
    for rank in range(ranks):
        for place in range(bounds[rank], bounds[rank + 1]):
            row = order[place]
            for entry in range(indptr[row], indptr[row + 1]):
                col = indices[entry]
                owner = owners[col]
                if owner == rank:
                    local[rank] += 1
                    continue
                remote[rank] += 1
                if last_reader[col] == rank:
                    continue
                last_reader[col] = rank
                received[rank] += 1
                sent[owner] += 1
                if last_reader_of_rank[owner] != rank:
                    last_reader_of_rank[owner] = rank
                    came_from[rank] += 1
                    went_to[owner] += 1
    return counts


@njit(cache=True, nogil=True)
def _block_counts(
    indptr: NDArray[Any],
    indices: NDArray[Any],
    row_parts: NDArray[np.int32],
    column_parts: NDArray[np.int32],
    parts: int,
) -> Integers:
    counts = np.zeros((parts, parts), dtype=np.int64)
    for row in range(len(row_parts)):
        for entry in range(indptr[row], indptr[row + 1]):
            counts[row_parts[row], column_parts[indices[entry]]] += 1
    return counts


@njit(cache=True, nogil=True)
def _edges_between(indptr: NDArray[Any], indices: NDArray[Any], owners: NDArray[np.int32]) -> int:
    """Count the edges of the graph of A + A^T between different parts; rows are sorted.

    These are the places (i, j) between parts, once where (j, i) has an entry too.
    """
    edges = 0
    # How far row j's columns reach the current row: that only grows, so every entry is passed once.
    reached = indptr[:-1].copy()
    for row in range(len(owners)):
        for entry in range(indptr[row], indptr[row + 1]):
            col = indices[entry]
            if owners[col] == owners[row]:
                continue
            edges += 1
            if col < row:
                continue
            place, end = reached[col], indptr[col + 1]
            while place < end and indices[place] < row:
                place += 1
            reached[col] = place
            if place < end and indices[place] == row:
                edges -= 1
    return edges
