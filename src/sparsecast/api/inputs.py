"""Input matrices: files, specifications, sparse matrices of any kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sparsecast.features.structure import Structure
from sparsecast.matrices.problem import Problem, as_csr

__all__ = ["as_csr", "as_problem", "read_matrix", "structure"]


def read_matrix(specification: str | Path) -> Problem:
    """Return the problem of a file, or of ``gallery:NAME?key=value&key=value``, its matrix read.

    Raises
    ------
    MatrixFileError, MatrixSizeError, UnknownNameError
        As `load` and `gallery` do.
    """
    problem = Problem.named(specification)
    _ = problem.matrix  # now, so that what is wrong with it is said before anything else is done
    return problem


def as_problem(A: Any, name: str = "matrix") -> Problem:
    """Return the problem of a sparse matrix, which is asked about more than once; a Problem as it is.

    Raises
    ------
    InputError
        If `A` is neither.
    """
    return Problem.of(A, name)


def structure(A: Any) -> Structure:
    """Return what models read of a sparse matrix or problem `A`; a Structure is returned as it is."""
    return A if isinstance(A, Structure) else as_problem(A).structure
