"""Reads matrix files of all known kinds into canonical CSR.

These are Matrix Market (``.mtx``, ``.mtx.gz``), Rutherford-Boeing and Harwell-Boeing (``.rb``, ``.rua``,
``.psa`` and so on, also with ``.gz``), SciPy's ``.npz``, MATLAB's ``.mat`` of versions 5 and 7, and edge
lists of graphs (``.txt``, ``.tsv``, ``.csv``, ``.edges``, ``.el``, also with ``.gz``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from sparsecast.errors import InputError, remedy_for
from sparsecast.matrices import suitesparse
from sparsecast.matrices.assembly import Contents, sort_rows
from sparsecast.matrices.edge_list import SUFFIXES as EDGE_LIST_SUFFIXES
from sparsecast.matrices.edge_list import read_edge_list
from sparsecast.matrices.harwell_boeing import SUFFIXES as HARWELL_BOEING_SUFFIXES
from sparsecast.matrices.harwell_boeing import read_harwell_boeing
from sparsecast.matrices.matlab import read_mat
from sparsecast.matrices.matrix_market import read_matrix_market
from sparsecast.matrices.npz import read_npz
from sparsecast.matrices.sources import check_file, damaged
from sparsecast.matrices.values import VALUE_TYPES
from sparsecast.records import DTYPES

#: The reader of each suffix; texts may be compressed, with .gz behind it.
_READERS: dict[str, Callable[[Path, np.dtype[Any] | None], Contents]] = {
    ".npz": read_npz,
    ".mat": read_mat,
    ".mtx": read_matrix_market,
    **dict.fromkeys(HARWELL_BOEING_SUFFIXES, read_harwell_boeing),
    **dict.fromkeys(EDGE_LIST_SUFFIXES, read_edge_list),
}
_BINARY = (".npz", ".mat")
_KNOWN = ".mtx, .rb, .hb, .rua and its like (.rsa, .pua, ...), each also with .gz; .npz, .mat"
_KNOWN_WITH_GRAPHS = f"{_KNOWN}; edge lists {', '.join(EDGE_LIST_SUFFIXES)}, each also with .gz"
# Integers of larger magnitude need not survive in a float64.
_LARGEST_EXACT = 2.0**53
_EXPECTED_DTYPE = f"expected one of {', '.join(DTYPES)}"


def load(
    path: str | os.PathLike[str], *, dtype: npt.DTypeLike | None = None
) -> csr_array[Any, tuple[int, int]]:
    """Read a matrix from a file.

    Parameters
    ----------
    path : str or path-like
        A file named ``.mtx``, ``.mtx.gz``, ``.rb``, ``.rua`` and so on, ``.npz`` or ``.mat``; or the edge
        list of a graph, ``.txt``, ``.tsv``, ``.csv``, ``.edges`` or ``.el``, also with ``.gz``. Or
        ``suitesparse:GROUP/NAME``: a matrix of the SuiteSparse Matrix Collection, downloaded once.
    dtype : dtype-like, optional
        One of DTYPES. Without it: float64, or complex128 where the file is complex, each in the single
        precision of float32 and complex64 where an ``.npz`` or ``.mat`` holds it. A complex type promotes a
        real file.

    Returns
    -------
    scipy.sparse.csr_array
        Sorted rows without duplicates, explicit zeros kept, int32 indices where they fit, else int64.

    Raises
    ------
    MatrixFileError
        If the file is missing, damaged, or of a kind that is not taken, or cannot be downloaded.
    MatrixSizeError
        If the matrix does not fit in memory; that is found before the memory is taken.
    InputError
        If `dtype` is another one, or a real one for a complex file: its imaginary parts would be lost.
    """
    text = os.fspath(path)
    if text.startswith(suitesparse.PREFIX):
        path = suitesparse.Downloaded.named(text).fetched()
    return read_file(path, dtype=dtype).matrix


def read_file(path: str | os.PathLike[str], *, dtype: npt.DTypeLike | None = None) -> Contents:
    """Read a matrix as `load` does, with what is to be said of its file."""
    file, value_type = Path(path), None
    if dtype is not None:
        try:
            value_type = np.dtype(dtype)
        except TypeError as error:
            remedy = remedy_for(str(dtype), DTYPES, "name one of them")
            raise InputError(f"dtype {dtype!r}: {_EXPECTED_DTYPE}; {remedy}") from error
        if value_type not in VALUE_TYPES:
            raise InputError(f"dtype {value_type}: {_EXPECTED_DTYPE}; name one of them")
    check_file(file)
    suffix = _suffix(file)
    kind = suffix.removesuffix(".gz")
    if kind not in _READERS or (kind in _BINARY and kind != suffix):
        raise damaged(file, f"its suffix '{suffix}' is unknown", f"known are {_KNOWN_WITH_GRAPHS}")
    with np.errstate(over="ignore"):  # a value beyond its type is infinite, which a note says
        return _finished(_READERS[kind](file, value_type))


def _suffix(file: Path) -> str:
    """Return the suffix of a file, with that before ``.gz``, in lower case."""
    name = file.name.lower()
    return Path(name.removesuffix(".gz")).suffix + (".gz" if name.endswith(".gz") else "")


def matrix_name(path: str | os.PathLike[str]) -> str:
    """Return the name of a file without the suffixes of a matrix file: ``"cant"`` for ``"some/cant.mtx.gz"``.

    Other dots of the name are kept. The file need not exist.
    """
    file = Path(path)
    suffix = _suffix(file)
    return file.name[: -len(suffix)] if suffix.removesuffix(".gz") in _READERS else file.name


def matrix_files(folder: str | os.PathLike[str]) -> list[Path]:
    """Return the matrix files of a folder, by name; without edge lists, since most texts are no graphs."""
    path = Path(folder)
    if not path.is_dir():
        raise InputError(f"{path} is no folder: expected one with matrix files; check the path")
    kinds = _READERS.keys() - EDGE_LIST_SUFFIXES
    kinds |= {f"{kind}.gz" for kind in kinds.difference(_BINARY)}
    names = sorted(file for file in path.iterdir() if file.is_file() and _suffix(file) in kinds)
    if not names:
        raise InputError(f"{path} has no matrix files: expected some of {_KNOWN}; name another folder")
    return names


def collected(matrices: Iterable[Any]) -> list[Any]:
    """Return the matrices, each once, with the files of folders in place of the folders.

    What is neither a text nor a path stays as it is.
    """
    items: dict[Any, Any] = {}
    for item in matrices:
        is_name = isinstance(item, str | os.PathLike)
        for matrix in matrix_files(item) if is_name and Path(item).is_dir() else [item]:
            items.setdefault(str(matrix) if is_name else id(matrix), matrix)
    return list(items.values())


def _finished(contents: Contents) -> Contents:
    """Return the contents with sorted rows, duplicates summed, and notes about the values."""
    matrix, stored = contents.matrix, contents.matrix.nnz
    if not matrix.has_sorted_indices:
        sort_rows(matrix.indptr, matrix.indices, matrix.data)
        matrix.has_sorted_indices = True
    matrix.sum_duplicates()
    duplicates, values = stored - matrix.nnz, matrix.data
    large = np.count_nonzero(np.abs(values) > _LARGEST_EXACT) if contents.is_integer else 0
    counts = {
        "duplicate entries, summed": duplicates,
        "explicit zeros, kept": values.size - np.count_nonzero(values),
        "NaN or infinite values": values.size - np.count_nonzero(np.isfinite(values)),
        "integers beyond 2**53, rounded to floating point": large,
    }
    found = (f"holds {count} {what}" for what, count in counts.items() if count)
    # With duplicates, some of the file's entries may lie in both triangles.
    triangle_nnz = None if duplicates else contents.triangle_nnz
    return contents._replace(notes=(*contents.notes, *found), triangle_nnz=triangle_nnz)
