"""A partition that is kept: one file, with a checksum of the pattern of its matrix."""

from __future__ import annotations

import hashlib
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.errors import InputError
from sparsecast.matrices.partitioning.partition import Partition
from sparsecast.system.files import replacement

#: Of the file; raised when it holds something else than before.
_VERSION = 1

# What zipfile and NumPy raise where a file is damaged; they do not promise less.
_DAMAGE = (
    *(ValueError, TypeError, KeyError, EOFError, MemoryError, RuntimeError),
    *(zipfile.BadZipFile, zlib.error, struct.error),
)


def pattern_checksum(A: csr_array[Any]) -> str:
    """Return a checksum of the shape of a matrix and of the places of its entries, without their values."""
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
    """Write a partition of a matrix into an ``.npz`` file, which is replaced in one step.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    order: dict[str, Any] = {} if partition.order is None else {"order": partition.order}
    try:
        with replacement(path) as temporary, temporary.open("wb") as stream:
            np.savez(
                stream,
                version=np.int64(_VERSION),
                method=np.str_(partition.method),
                ranks=np.int64(partition.ranks),
                pattern=np.str_(pattern_checksum(A)),
                row_bounds=partition.row_bounds,
                column_bounds=partition.column_bounds,
                **order,
            )
    except OSError as error:
        raise InputError(
            f"partition {path} cannot be written ({error.strerror or error}): expected a file in a writable "
            f"folder; name another"
        ) from error


def load(path: Path, A: csr_array[Any]) -> Partition:
    """Read the partition of a matrix that `save` wrote.

    Raises
    ------
    InputError
        If the file is missing, damaged, of a later version, or of a matrix with another pattern.
    """
    stored = _read(path)
    if stored["version"].tolist() != _VERSION:
        raise _refused(path, f"is of version {str(stored['version'])[:20]}", f"version {_VERSION}")
    if wrong := _wrong(stored):
        raise _refused(path, wrong, "what sparsecast partition --out writes")
    rows, cols = A.shape
    if stored["pattern"].tolist() != pattern_checksum(A):
        of = f"{stored['row_bounds'][-1]:,} x {stored['column_bounds'][-1]:,}"
        raise _refused(path, f"is of another matrix, {of}", f"one of this pattern of {rows:,} x {cols:,}")
    return Partition(
        method=str(stored["method"]),
        ranks=int(stored["ranks"]),
        row_bounds=stored["row_bounds"],
        column_bounds=stored["column_bounds"],
        order=stored.get("order"),
    )


def _read(path: Path) -> dict[str, NDArray[Any]]:
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            stored = {name: archive[name] for name in archive.files}
    except OSError as error:
        raise _refused(path, f"cannot be read ({error.strerror or error})", "a kept partition") from error
    except _DAMAGE as error:
        why = " ".join(str(error).split())[:80]
        raise _refused(path, f"is damaged, or no partition ({why})", "a kept partition") from error
    names = ("version", "method", "ranks", "pattern", "row_bounds", "column_bounds")
    # NumPy gives the bytes of what is no array.
    arrays = {name for name, array in stored.items() if isinstance(array, np.ndarray)}
    if missing := [name for name in (*names, *stored) if name not in arrays]:
        raise _refused(path, f"has no {missing[0]}", "a kept partition")
    return stored


def _wrong(stored: dict[str, NDArray[Any]]) -> str | None:
    """Return in words what no partition has; None if nothing is wrong."""
    for name, kind in (("method", "U"), ("pattern", "U"), ("ranks", "i")):
        if stored[name].shape != () or stored[name].dtype.kind != kind:
            return f"has no {name}"
    for name in ("row_bounds", "column_bounds"):
        bounds = stored[name]
        if bounds.dtype != np.int64 or bounds.ndim != 1 or len(bounds) < 2:
            return f"has no whole numbers as {name}"
        if bounds[0] != 0 or (np.diff(bounds) < 0).any():
            return f"has {name} that do not rise from 0"
    ranks, parts = int(stored["ranks"]), len(stored["row_bounds"]) - 1
    if ranks not in (parts, parts**2) or len(stored["column_bounds"]) != parts + 1:
        return f"has {parts} parts for {ranks} ranks"
    order, (rows, cols) = stored.get("order"), (stored["row_bounds"][-1], stored["column_bounds"][-1])
    if order is not None and not (rows == cols and _is_permutation(order, rows)):
        return f"has an order that is none of {rows:,} rows and columns"
    return None


def _is_permutation(order: NDArray[Any], rows: int) -> bool:
    if order.dtype != np.int64 or order.shape != (rows,):
        return False
    is_met = np.zeros(rows, dtype=bool)
    is_met[order[(order >= 0) & (order < rows)]] = True
    return bool(is_met.all())


def _refused(path: Path, problem: str, expected: str) -> InputError:
    return InputError(f"partition {path} {problem}: expected {expected}; partition the matrix again")
