"""What a rank computes and what it needs of others in a local 1D product, known without a message."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.distributed.parts import RankPart
from sparsecast.matrices.partitioning.partition import Integers
from sparsecast.system.integers import index_dtype


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
