"""How kernels are declared: as by `numba.njit`, with a cache and an alignment that hold for them alone.

Nothing changes for other functions of the process: their caches, their folder and their code are Numba's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numba
from llvmlite import binding  # type: ignore[import-untyped]
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher

from sparsecast.system.compilation import locked, passing_folder

#: Kernels begin at a multiple of 64 bytes, the width of what a processor fetches and decodes at once. Other
#: functions of Numba begin at multiples of 16. Code from the cache then lay at another place within 64 bytes
#: than in the process that compiled it, and the loop of COO took 1.2 times as long there.
ALIGNED, USUAL = "--align-all-functions=6", "--align-all-functions=0"

#: How many compilations of kernels are going on, one within the other.
_depth = [0]


class KernelFile(IndexDataCacheFile):
    """The kept code of a kernel, whatever processes write it at once.

    Numba reads the index of a function, takes the next number for a file of code, writes the index and then
    the file. Two processes at once take the same number, and from then on a process that asks for one type
    gets the code for the other: wrong results where their values have the same size.
    """

    def save(self, key: Any, data: Any) -> None:
        """Keep the code of a type under a name of its own."""
        with locked(Path(self._cache_path)):
            overloads = self._load_index()  # type: ignore[no-untyped-call]
            taken, numbers = set(overloads.values()), range(1, len(overloads) + 2)
            free = next(name for name in map(self._data_name, numbers) if name not in taken)
            name = overloads.setdefault(key, free)
            # The index names no file before it is whole: an older one of that name may hold another type.
            self._save_data(name, data)  # type: ignore[no-untyped-call]
            self._save_index(overloads)  # type: ignore[no-untyped-call]


class KernelCache(FunctionCache):
    """The cache of a kernel: in Numba's folder, or where there is none in one of this process."""

    def __init__(self, py_func: Callable[..., Any]) -> None:
        with kernel_folder():
            super().__init__(py_func)  # type: ignore[no-untyped-call]
        base, stamp = self._impl.filename_base, self._impl.locator.get_source_stamp()
        self._cache_file = KernelFile(self._cache_path, base, stamp)  # type: ignore[no-untyped-call]

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return (*super()._index_key(sig, codegen), ALIGNED)  # type: ignore[no-untyped-call]


class Kernel(CPUDispatcher):
    """A compiled function of ours."""

    def enable_caching(self) -> None:
        self._cache = KernelCache(self.py_func)

    def compile(self, sig: Any) -> Any:
        """Compile for the types of `sig`, or load what was kept."""
        with _alignment():
            return super().compile(sig)


def njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a kernel, with the options of `numba.njit`."""
    cache = options.pop("cache", False)

    def declare(function: Callable[..., Any]) -> Any:
        kernel = numba.njit(**options)(function)
        if isinstance(kernel, CPUDispatcher):  # not where NUMBA_DISABLE_JIT leaves the function as it is
            kernel.__class__ = Kernel
            if cache:
                kernel.enable_caching()
        return kernel

    return declare


@contextmanager
def _alignment() -> Iterator[None]:
    """Align the functions that are compiled meanwhile. This thread holds the compiler's lock."""
    with global_compiler_lock:
        if not _depth[0]:
            binding.set_option("sparsecast", ALIGNED)
        _depth[0] += 1
        try:
            yield
        finally:
            _depth[0] -= 1
            if not _depth[0]:
                binding.set_option("sparsecast", USUAL)


@contextmanager
def kernel_folder() -> Iterator[None]:
    """Have Numba choose the folder of this process, where it would find none."""
    passing = passing_folder()
    if passing is None:
        yield
        return
    before = numba.config.CACHE_DIR  # type: ignore[attr-defined]
    numba.config.CACHE_DIR = passing  # type: ignore[attr-defined]
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before  # type: ignore[attr-defined]
