"""Where compiled kernels are kept. This is settled before the first kernel is declared.

Numba keeps them next to the source files, or else in the user's cache folder. It refuses to declare a kernel
that it can keep nowhere. A package on a read-only disk must still work for a user without a home folder.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

#: Functions begin at a multiple of 64 bytes, the width of what a processor fetches and decodes at once.
_ALIGNMENT = "--align-all-functions=6"

#: Why kernels of this process are lost with it: one sentence, or none where they are kept.
_lost: list[str] = []


def align_functions() -> None:
    """Have code run as fast in each process that loads it from the cache as in the one that compiled it.

    Numba's functions begin at multiples of 16 bytes. Code from the cache lay at another place within 64 bytes
    than in the process that compiled it, and the loop of COO took 1.2 times as long there.
    """
    from llvmlite import binding  # type: ignore[import-untyped]
    from numba.core.codegen import JITCPUCodegen

    described = JITCPUCodegen.magic_tuple

    def magic_tuple(self: Any) -> Any:
        """Return what code in the cache must agree with."""
        return (*described(self), _ALIGNMENT)  # type: ignore[no-untyped-call]

    binding.set_option("sparsecast", _ALIGNMENT)
    JITCPUCodegen.magic_tuple = magic_tuple  # type: ignore[method-assign]


def ensure_cache_folder() -> None:
    """Have Numba keep kernels in a folder of this process where it finds no lasting one; say so once."""
    named = os.environ.get("NUMBA_CACHE_DIR")
    folders = [Path(named) if named else Path(__file__).parent]
    if _can_be_written(folders[0]):
        return
    import atexit
    import shutil
    import tempfile

    import platformdirs

    if not named:
        folders.append(Path(platformdirs.user_cache_dir("numba", appauthor=False)))
        if _can_be_written(folders[1]):
            return
    passing = tempfile.mkdtemp(prefix="sparsecast-kernels-")
    atexit.register(shutil.rmtree, passing, ignore_errors=True)
    os.environ["NUMBA_CACHE_DIR"] = passing
    if "numba" in sys.modules:
        sys.modules["numba"].config.CACHE_DIR = passing
    _lost.append(
        f"compiled kernels cannot be kept in {' or '.join(map(str, folders))}: expected a folder that can be "
        f"written, so every process compiles anew; set NUMBA_CACHE_DIR to one"
    )
    warnings.warn(_lost[0], stacklevel=3)


def lost_kernels() -> str:
    """Return why kernels that this process compiles are lost, with the remedy; empty where they are kept."""
    return _lost[0] if _lost else ""


def _can_be_written(folder: Path) -> bool:
    """Tell whether `folder` can be written, or made where it is missing."""
    # Not Path.exists, which raises below a folder that may not be searched.
    existing = next(each for each in (folder, *folder.parents) if os.path.exists(each))  # noqa: PTH110
    return existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)


def keep_kernels_apart() -> None:
    """Have processes that compile a function for different types keep each type's code under its own name.

    Numba reads the index of a function, takes the next number for a file of code, writes the index and then
    the file. Two processes at once take the same number, and from then on a process that asks for one type
    gets the code for the other: wrong results where their values have the same size.
    """
    from numba.core.caching import IndexDataCacheFile

    def save(self: Any, key: Any, data: Any) -> None:
        with _locked(Path(self._cache_path)):
            overloads = self._load_index()
            taken, numbers = set(overloads.values()), range(1, len(overloads) + 2)
            free = next(name for name in map(self._data_name, numbers) if name not in taken)
            name = overloads.setdefault(key, free)
            # The index names no file before it is whole: an older one of that name may hold another type.
            self._save_data(name, data)
            self._save_index(overloads)

    IndexDataCacheFile.save = save  # type: ignore[method-assign]


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, which ends with the process that holds it."""
    with (folder / "sparsecast.lock").open("a") as stream:
        _lock(stream.fileno())
        yield


if os.name == "nt":
    import msvcrt

    def _lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined]
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
