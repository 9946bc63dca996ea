"""Distributions estimated from counts alone, for matrices that are not at hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsecast.errors import InputError
from sparsecast.matrices.partitioning.distribution import Distribution
from sparsecast.matrices.partitioning.methods import GRID, METHODS, checked_ranks
from sparsecast.matrices.partitioning.methods.uniform_2d import square_root
from sparsecast.matrices.partitioning.partition import Integers, require_square

#: Neighbours of an inner part of METIS, by the dimension of the mesh: six in the plane, the average of any
#: map; fourteen in space, those of the cells that fill it with the least surface.
_INNER_NEIGHBOURS = {2: 6, 3: 14}


def estimated_distribution(
    rows: int, cols: int, nnz: int, ranks: int, method: str, dimension: int | None = None
) -> Distribution:
    """Return the Distribution that is estimated from counts alone.

    Rows, columns, entries, words and messages are equal on all ranks: means. Without `dimension`, words and
    messages are upper bounds: each entry needs another entry of x, of another rank.

    With `dimension`, the matrix is that of a mesh of N^d points, which depend on their neighbours one step
    along each axis. Parts of METIS are cubes of v = n/P points with 2 d faces of v^((d-1)/d) points, except
    on the boundary of the mesh. Other methods cut a mesh that is numbered along its axes into strips. More
    entries per row than 2 d + 1 count as neighbours across corners: more entries are remote then, and words
    are underestimated. `python benchmarks/run.py partitions` of commit 40d5b332 compares with counted words:
    METIS has 1.01 to 1.14 times the words in theory for 5 and 7 points, and 1.4 to 2.1 times for 27.
    """
    ranks = checked_ranks(ranks)
    METHODS.get(method)
    if method in ("metis", GRID):
        require_square((rows, cols), method)
    if dimension not in (None, *_INNER_NEIGHBOURS):
        raise InputError(f"dimension {dimension} of a mesh: expected 2 or 3; give one of them, or none")
    if dimension is not None and rows != cols:
        raise InputError(
            f"dimension {dimension} of a matrix of {rows:,} x {cols:,}: expected a square one, of a mesh; "
            f"leave the dimension out"
        )
    if method == GRID:
        return _blocks(rows, nnz, ranks)
    rank_rows = _shares(rows, ranks)
    rank_columns = rank_rows if rows == cols else _shares(cols, ranks)
    entries = _entries(nnz, rank_rows > 0)
    if dimension is None:
        words = np.minimum(entries, cols - rank_columns)
        remote = entries * (words > 0)
        messages = np.minimum(words, ranks - 1)
    else:
        # Ranks without rows take no part.
        sharing = min(ranks, max(rows, 1))
        halo, others = _mesh_halo(rows, sharing, method, dimension)
        # Remote entries per received entry of x, on a plane face: one for a star of 2 d + 1 points, 3^(d-1)
        # for a box of 3^d points, linear in between.
        star, box, of_box = 2 * dimension + 1, 3.0**dimension, 3.0 ** (dimension - 1)
        crossing = max(1.0, 1 + (nnz / max(1, rows) - star) * (of_box - 1) / (box - star))
        words = np.minimum(np.minimum(entries, cols - rank_columns), halo)
        messages = np.minimum(words, min(others, sharing - 1))
        remote = np.minimum(entries, np.rint(words * crossing).astype(np.int64))
    return Distribution(
        method=method,
        shape=(rows, cols),
        rows=rank_rows,
        columns=rank_columns,
        local_nnz=entries - remote,
        remote_nnz=remote,
        received_words=words,
        sent_words=words,
        received_messages=messages,
        sent_messages=messages,
        edge_cut=None if dimension is None else int(remote.sum()) // 2,
        is_estimate=True,
    )


def _shares(total: int, parts: int) -> Integers:
    """Return whole shares of a total, the first ones larger by one; no product overflows here."""
    return total // parts + (np.arange(parts) < total % parts)


def _entries(nnz: int, has_rows: np.ndarray[Any, np.dtype[np.bool_]]) -> Integers:
    """Return the entries of each rank: equal for all ranks with rows."""
    entries = np.zeros(len(has_rows), dtype=np.int64)
    if nnz:
        entries[has_rows] = _shares(nnz, int(has_rows.sum()))
    return entries


def _blocks(rows: int, nnz: int, ranks: int) -> Distribution:
    parts = square_root(ranks)
    sizes = np.diff(np.minimum(np.arange(parts + 1) * -(-rows // parts), rows))
    block_rows, block_columns = np.repeat(sizes, parts), np.tile(sizes, parts)
    entries = _entries(nnz, (block_rows > 0) & (block_columns > 0))
    return Distribution.of_blocks(GRID, block_rows, block_columns, entries, is_estimate=True)


def _mesh_halo(rows: int, ranks: int, method: str, dimension: int) -> tuple[int, int]:
    """Return the mean number of entries of x that a rank receives, and of ranks that they come from."""
    if method == "metis":
        points = rows / ranks
        inner = 1 - ranks ** (-1 / dimension)  # the share of the faces that is not on the boundary
        faces = 2 * dimension * points ** (1 - 1 / dimension)
        return round(inner * faces), round(inner * _INNER_NEIGHBOURS[dimension])
    # A strip reaches as far as N^k along axis k. Where it has fewer points, those lie apart, in two ranks.
    points = max(1.0, rows / ranks)
    reaches = [rows ** (axis / dimension) for axis in range(dimension)]
    near = max(reach for reach in reaches if reach <= points * (1 + 1e-9))
    apart = sum(reach > near for reach in reaches)
    inner = 1 - 1 / ranks
    return round(2 * inner * (near + apart * points)), round(2 * inner * (1 + 2 * apart))
