"""Where compiled kernels are kept.

Numba keeps them next to the source files, or else in the user's cache folder. It refuses to declare a kernel
that it can keep nowhere. A package on a read-only disk must still work for a user without a home folder.
"""

from __future__ import annotations

import os
import warnings
from functools import cache
from pathlib import Path

from filelock import FileLock

#: The variable that tells processes that we start of the folder of this one.
_PASSING = "SPARSECAST_KERNEL_FOLDER"

#: Why kernels of this process are lost with it: one sentence, or none where they are kept.
_lost: list[str] = []


@cache
def passing_folder() -> str | None:
    """Return the folder of this process for compiled kernels, where no lasting one is; say so once.

    None where Numba finds one: NUMBA_CACHE_DIR, beside our modules, or the user's cache. Processes that this
    one starts share the folder. It is removed at the end of this one.
    """
    if _PASSING in os.environ:
        return os.environ[_PASSING]
    named = os.environ.get("NUMBA_CACHE_DIR")
    folders = [Path(named) if named else Path(__file__).parent]
    if _can_be_written(folders[0]):
        return None
    import atexit
    import shutil
    import tempfile

    import platformdirs

    if not named:
        folders.append(Path(platformdirs.user_cache_dir("numba", appauthor=False)))
        if _can_be_written(folders[1]):
            return None
    passing = tempfile.mkdtemp(prefix="sparsecast-kernels-")
    atexit.register(shutil.rmtree, passing, ignore_errors=True)
    os.environ[_PASSING] = passing
    _lost.append(
        f"compiled kernels cannot be kept in {' or '.join(map(str, folders))}: expected a folder that can be "
        f"written, so every process compiles anew; set NUMBA_CACHE_DIR to one"
    )
    warnings.warn(_lost[0], stacklevel=2)
    return passing


def lost_kernels() -> str:
    """Return why kernels that this process compiles are lost, with the remedy; empty where they are kept."""
    passing_folder()
    return _lost[0] if _lost else ""


def _can_be_written(folder: Path) -> bool:
    """Tell whether `folder` can be written, or made where it is missing."""
    # Not Path.exists, which raises below a folder that may not be searched.
    existing = next(each for each in (folder, *folder.parents) if os.path.exists(each))  # noqa: PTH110
    return existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)


def locked(folder: Path) -> FileLock:
    """Return the lock of a folder, which ends with the process that holds it."""
    return FileLock(folder / "sparsecast.lock")
