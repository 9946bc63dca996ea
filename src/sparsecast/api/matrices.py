"""Matrices that are asked about: read from files, tables and counts, with what is known of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sparsecast.benchmark.evaluation import distinct_names as distinct_names
from sparsecast.benchmark.published import FIVE, OF_MATRIX, summarised
from sparsecast.benchmark.published_moments import described, has_moments, moment_lines, table_lines
from sparsecast.errors import InputError, StorageError
from sparsecast.features import FEATURES
from sparsecast.features.analysis import structure as structure_of
from sparsecast.features.structure import Structure
from sparsecast.matrices.problem import Problem as Problem
from sparsecast.matrices.reading import collected
from sparsecast.matrices.shards import Shard
from sparsecast.matrices.structure_files import COUNTS_PREFIX, counted_structure
from sparsecast.matrices.structure_files import read_structure as read_structure_file


def read_matrix(specification: str | Path) -> Problem:
    """Return the problem of a file, or of ``gallery:NAME?key=value&key=value``, its matrix read."""
    problem = Problem.named(specification)
    _ = problem.matrix  # now, so that what is wrong with it is said before anything else is done
    return problem


def read_question(text: str) -> tuple[str, Problem | Structure]:
    """Return the name of what a forecast is asked for, and its problem, or its Structure alone.

    `text` is as for `read_matrix`, a JSON file of a Structure, or ``counts:rows=R&cols=C&nnz=N``.
    """
    if text.startswith(COUNTS_PREFIX):
        return text, counted_structure(text)
    if Path(text).suffix.lower() == ".json":
        return read_structure_file(Path(text))
    problem = read_matrix(text)
    return problem.name, problem


def named_problems(
    matrices: Sequence[Any], shard: str | Shard | None = None
) -> tuple[dict[str, Problem], dict[str, str]]:
    """Return the problems of a collection, each once and by a name of its own, and why others are none.

    Folders stand for their files. With a `shard`, they are those of that part.
    """
    found: dict[str, Problem] = {}
    refused: dict[str, str] = {}
    part = Shard.of(shard)
    for number, item in enumerate(collected(matrices), 1):
        is_name = isinstance(item, str | Path)
        name = str(item) if is_name else f"matrix {number}"
        try:
            problem = Problem.named(item) if is_name else Problem.of(item, name)
            if part.has(problem):
                found.setdefault(problem.specification, problem)
        except InputError as error:
            refused[name] = str(error)
    names = distinct_names({key: problem.name for key, problem in found.items()})
    return {names[key]: problem for key, problem in found.items()}, refused


@contextmanager
def left_out(name: str, refused: dict[str, str]) -> Iterator[None]:
    """Enter why a matrix refuses, where it does; a StorageError would be the same with every other matrix."""
    try:
        yield
    except StorageError:
        raise
    except InputError as error:
        refused[name] = str(error)


def structure(A: Any) -> Structure:
    """Return what models read of a sparse matrix.

    Parameters
    ----------
    A : sparse matrix, Problem or Structure
        Of shape (rows, cols); a Structure is returned as it is.
    """
    return A if isinstance(A, Structure) else Problem.of(A).structure


def shared_structure(problem: Problem) -> Structure:
    """Return the Structure of a matrix with all feature groups: for a file that answers any question."""
    found = problem.structure
    rest = structure_of(problem.matrix, groups=found.lacks(FEATURES.names()))
    return found.having(*rest.groups.values())


def is_table(text: str) -> bool:
    """Tell whether a question is about a table of matrices, such as one of published results."""
    return text.lower().endswith((".csv", ".csv.gz", ".tsv", ".tsv.gz"))


def read_table(path: str | Path) -> tuple[dict[str, Structure], dict[str, str]]:
    """Return what a table tells of its matrices, each once, by ``GROUP/MATRIX``, and why others are left out.

    The columns are those of `import_machine` without format and times. Where the row lengths are missing,
    the counts alone are known. An InputError says that the file is no such table, or tells of no matrix that
    can be.
    """
    structures: dict[str, Structure] = {}
    refused: dict[str, str] = {}
    path, columns = Path(path), ("group", *FIVE, "rd_variance")
    moments = has_moments(path)
    for line in moment_lines(path) if moments else table_lines(path, OF_MATRIX, columns):
        name = f"{line['group']}/{line['matrix']}" if line["group"] else line["matrix"]
        if name in structures or name in refused:
            continue
        try:
            structures[name] = described(line) if moments else summarised(line)
        except InputError as error:
            refused[name] = str(error)
    if not structures:
        raise InputError(next(iter(refused.values()), f"{path} has no lines: expected matrices; add some"))
    return structures, refused
