"""Published results: machines that nobody here has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sparsecast.benchmark.published import import_published
from sparsecast.results.machines import Imported


def import_machine(
    path: str | Path | Sequence[str | Path], name: str, machine: str | None = None
) -> tuple[Imported, Path]:
    """Turn published results into a profile of the user's data folder, and return it with its place.

    `path` is a table, also with gzip, or Ginkgo's benchmark JSON, one file, a folder, or several together;
    `benchmark/published.py` and `benchmark/published_moments.py` say with which columns. An earlier import
    under the `name` is replaced. `machine` says which machine of the file it is, where it has several, and
    which it was, where the file names none.

    An InputError or a ProfileError says that the name cannot be, or that the file has another layout or times
    that cannot be.
    """
    paths = [path] if isinstance(path, str | Path) else path
    imported = import_published([Path(file) for file in paths], name, machine)
    return imported, Path(imported.profile.save())
