"""Published results: machines that nobody here has, and tables of matrices to forecast."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from sparsecast.benchmark.published import FIVE, OF_MATRIX, Imported, import_published, summarised
from sparsecast.benchmark.published_moments import described, has_moments, moment_matrices
from sparsecast.benchmark.published_tables import Line, table_lines
from sparsecast.errors import InputError
from sparsecast.features.structure import Structure

TABLE_SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz")


def import_machine(
    path: str | Path | Sequence[str | Path], name: str, machine: str | None = None
) -> tuple[Imported, Path]:
    """Turn published results into a profile of the user's data folder, and return it with its place.

    Parameters
    ----------
    path : path-like, or sequence of these
        A table, also with gzip, or Ginkgo's benchmark JSON, one file or a folder; `benchmark/published.py`
        and `benchmark/published_moments.py` say with which columns. Several are taken together.
    name : str
        Of the profile; an earlier import under it is replaced.
    machine : str, optional
        Which machine of the file, where it has several; which it was, where the file names none.

    Raises
    ------
    InputError, ProfileError
        If the name cannot be, or the file has another layout or times that cannot be.
    """
    paths = [path] if isinstance(path, str | Path) else path
    found = import_published([Path(each) for each in paths], name, machine)
    return found, found.profile.save()


def is_table(text: str) -> bool:
    """Tell whether a question is about a table of matrices."""
    return text.lower().endswith(TABLE_SUFFIXES)


def read_table(path: str | Path) -> tuple[dict[str, Structure], dict[str, str]]:
    """Return what a table tells of its matrices, each once, by ``GROUP/MATRIX``, and why others are left out.

    The columns are those of `import_machine` without format and times. Where the row lengths are missing,
    the counts alone are known.

    Raises
    ------
    InputError
        If the file is no such table, or tells of no matrix that can be.
    """
    structures: dict[str, Structure] = {}
    refused: dict[str, str] = {}
    moments = has_moments(Path(path))
    for line in moment_matrices(Path(path)) if moments else _summaries(Path(path)):
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


def _summaries(path: Path) -> Iterator[Line]:
    return table_lines(path, OF_MATRIX, ("group", *FIVE, "rd_variance"))
