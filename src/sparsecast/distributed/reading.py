"""Files that all ranks read together, each a part of the bytes."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from sparsecast.distributed.parts import RankPart, Triplets, from_entries
from sparsecast.distributed.processes import in_step
from sparsecast.errors import RanksError
from sparsecast.matrices.assembly import HERMITIAN
from sparsecast.matrices.matrix_market import read_triplets
from sparsecast.matrices.partitioning.partition import Partition
from sparsecast.matrices.sources import failures_of
from sparsecast.records import Configuration
from sparsecast.system.parallel import equal_parts

#: Pieces of a file that its digest looks at, and their bytes: a digest of all would have each rank read all.
_PIECES, _PIECE_BYTES = 64, 1 << 16


def file_digest(path: Path) -> str:
    """Return the size of a file and a checksum of 64 pieces of it: of all bytes up to 4 MiB."""
    digest, size = hashlib.sha256(), path.stat().st_size
    with failures_of(path), path.open("rb") as file:
        for place in np.linspace(0, max(0, size - _PIECE_BYTES), _PIECES).astype(int).tolist():
            file.seek(place)
            digest.update(file.read(_PIECE_BYTES))
    return f"{size:,} bytes, sha256 of pieces {digest.hexdigest()[:16]}"


def read_in_parts(comm: Any, path: Path, configuration: Configuration) -> RankPart:
    """Read a divisible Matrix Market file, each rank as many bytes, and send each entry to its rank.

    Rows are partitioned in equal numbers. Entries that a symmetric file leaves out are added by the rank that
    reads their mirror image.
    """
    dtype = np.dtype(configuration.dtype)
    header, read = in_step(comm, lambda: read_triplets(path, comm.rank, comm.size, dtype))
    stored = sum(comm.allgather(len(read.values)))
    if stored != header.stored:
        raise RanksError(
            f"{path}: holds {stored} entries, expected the {header.stored} of its header; "
            f"copy or download it again"
        )
    rows, cols = (equal_parts(length, comm.size) for length in header.shape)
    partition = Partition("rows", comm.size, rows, rows if header.shape[0] == header.shape[1] else cols)
    return from_entries(comm, _mirrored(Triplets(*read), header.mirror), partition)


def _mirrored(entries: Triplets, mirror: int) -> Triplets:
    """Add the entries at the transposed places of a symmetric file; one of assembly.MIRRORS."""
    if mirror == 0:
        return entries
    off = entries.rows != entries.columns
    values = entries.values[off]
    if mirror == HERMITIAN:
        values = values.conj()
    elif mirror < 0:
        values = -values
    return Triplets(
        np.concatenate((entries.rows, entries.columns[off])),
        np.concatenate((entries.columns, entries.rows[off])),
        np.concatenate((entries.values, values)),
    )
