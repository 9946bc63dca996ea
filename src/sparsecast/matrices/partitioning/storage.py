"""A partition in a file, with a checksum of the pattern of its matrix."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from sparsecast.errors import InputError
from sparsecast.matrices.partitioning.methods import MOST_RANKS
from sparsecast.matrices.partitioning.partition import Partition
from sparsecast.system.archives import read_arrays
from sparsecast.system.files import write_file

#: Version of the file, raised with its content.
_VERSION = 1


def pattern_checksum(A: csr_array[Any]) -> str:
    """Return a checksum of the shape of a matrix and of the places of its entries, without the values."""
    if not A.has_sorted_indices:
        A = A.sorted_indices()
    digest = hashlib.sha256(repr(A.shape).encode())
    stored = int(A.indptr[-1])
    for array in (A.indptr, A.indices[:stored]):
        # The same for indices of 32 and of 64 bits, a piece at a time.
        for first in range(0, len(array), 1 << 20):
            digest.update(array[first : first + (1 << 20)].astype("<i8").tobytes())
    return digest.hexdigest()[:32]


def save(partition: Partition, path: Path, A: csr_array[Any]) -> None:
    """Write a partition of a matrix into an ``.npz`` file, which is replaced in one step."""
    order: dict[str, Any] = {} if partition.order is None else {"order": partition.order}
    archive = io.BytesIO()
    np.savez(
        archive,
        version=np.int64(_VERSION),
        method=np.str_(partition.method),
        ranks=np.int64(partition.ranks),
        pattern=np.str_(pattern_checksum(A)),
        row_bounds=partition.row_bounds,
        column_bounds=partition.column_bounds,
        **order,
    )
    write_file(path, archive.getvalue())


def load(path: Path, A: csr_array[Any]) -> Partition:
    """Read the partition of a matrix that `save` wrote."""
    try:
        stored = read_arrays(path)
        partition = Partition(
            str(stored["method"]),
            int(stored["ranks"]),
            stored["row_bounds"],
            stored["column_bounds"],
            stored.get("order"),
        )
        is_sound = stored["version"] == _VERSION and partition.is_sound and partition.ranks <= MOST_RANKS
        pattern = str(stored["pattern"])
    except OSError as error:
        raise _refused(path, f"cannot be read ({error.strerror or error})", "a kept partition") from error
    except (ValueError, TypeError, IndexError, KeyError) as error:
        problem = f"is damaged, or no partition ({str(error)[:80]})"
        raise _refused(path, problem, "a kept partition") from error
    if not is_sound:
        raise _refused(path, "is damaged, or of another version", f"a kept partition of version {_VERSION}")
    if pattern != pattern_checksum(A):
        rows, cols = partition.shape
        expected = f"one of this pattern of {A.shape[0]:,} x {A.shape[1]:,}"
        raise _refused(path, f"is of another matrix, {rows:,} x {cols:,}", expected)
    return partition


def _refused(path: Path, problem: str, expected: str) -> InputError:
    return InputError(f"partition {path} {problem}: expected {expected}; partition the matrix again")
