"""Matrices as they are given: files, gallery specifications, sparse matrices of any kind."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scipy.sparse import csr_array, issparse

from sparsecast.errors import InputError
from sparsecast.matrices.analysis import structure as structure_of
from sparsecast.matrices.gallery import gallery_from_specification
from sparsecast.matrices.reading import matrix_name, read
from sparsecast.matrices.values import computed_dtype
from sparsecast.records import Structure

GALLERY_PREFIX = "gallery:"


@dataclass(frozen=True)
class NamedMatrix:
    """A matrix as it was read.

    Attributes
    ----------
    name : str
    matrix : csr_array
    notes : tuple of str
        What a reader should know of it: summed duplicates, stored zeros, values that are not finite.
    """

    name: str
    matrix: csr_array[Any]
    notes: tuple[str, ...]


def read_matrix(specification: str | Path) -> NamedMatrix:
    """Return a matrix from a file, or from the gallery for ``gallery:NAME?key=value&key=value``.

    Raises
    ------
    MatrixFileError, MatrixSizeError, UnknownNameError
        As `load` and `gallery` do.
    """
    text = str(specification)
    if text.startswith(GALLERY_PREFIX):
        return NamedMatrix(text, gallery_from_specification(text.removeprefix(GALLERY_PREFIX)), ())
    found = read(text)
    return NamedMatrix(matrix_name(text), found.matrix, tuple(found.notes))


def structure(A: Any) -> Structure:
    """Return what models read of a sparse matrix `A`; a Structure is returned as it is."""
    return A if isinstance(A, Structure) else structure_of(as_csr(A))


def as_csr(A: Any) -> csr_array[Any]:
    """Return a sparse matrix of SciPy's as a csr_array of a type that is computed with.

    Raises
    ------
    InputError
        If it is none.
    """
    if not issparse(A):
        raise InputError(f"{type(A).__name__} is no sparse matrix: expected one of SciPy's; convert it")
    matrix: csr_array[Any] = A if isinstance(A, csr_array) else csr_array(A)  # type: ignore[call-overload]
    wanted = computed_dtype(matrix.dtype)
    return matrix if matrix.dtype == wanted else matrix.astype(wanted)
