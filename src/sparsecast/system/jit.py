"""How kernels are declared: as by `numba.njit`, with a cache and an alignment that hold for them alone.

Nothing changes for other functions of the process: their caches, their folder and their code are Numba's own.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from filelock import FileLock
from llvmlite import binding
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher

#: Kernels begin at a multiple of 64 bytes, the width of what a processor fetches and decodes at once. Other
#: functions of Numba begin at multiples of 16. Code from the cache then lay at another place within 64 bytes
#: than in the process that compiled it, and the loop of COO took 1.2 times as long there.
ALIGNED, USUAL = "--align-all-functions=6", "--align-all-functions=0"

#: How kernels call the pool of threads. Numba keeps a kernel until its own file changes, so this number
#: rises when `numba_pool.each_part` calls in another way, or kept kernels would jump to a wrong address.
CALL_OF_POOL = 2

#: Whether a kernel is being compiled: those that it calls are compiled meanwhile.
_is_compiling = [False]

#: Why kernels of this process are lost with it: one sentence, or none where they are kept.
_lost: list[str] = []


def lost_kernels() -> str:
    """Return why kernels that this process compiles are lost, with the remedy; empty where they are kept."""
    return "".join(_lost)


class KernelFile(IndexDataCacheFile):
    """The kept code of a kernel, whatever processes write it at once.

    Numba reads the index of a function, takes the next number for a file of code, writes the index and then
    the file. Two processes at once take the same number, and from then on a process that asks for one type
    gets the code for the other: wrong results where their values have the same size.
    """

    def save(self, key: Any, data: Any) -> None:
        """Keep the code of a type under a name of its own."""
        with FileLock(Path(self._cache_path) / "sparsecast.lock"):
            overloads = self._load_index()  # type: ignore[no-untyped-call]
            taken, numbers = set(overloads.values()), range(1, len(overloads) + 2)
            free = next(name for name in map(self._data_name, numbers) if name not in taken)
            name = overloads.setdefault(key, free)
            # The index names no file before it is whole: an older one of that name may hold another type.
            self._save_data(name, data)  # type: ignore[no-untyped-call]
            self._save_index(overloads)  # type: ignore[no-untyped-call]


class KernelCache(FunctionCache):
    """The cache of a kernel: NUMBA_CACHE_DIR, beside our modules, or the user's cache."""

    def __init__(self, py_func: Callable[..., Any]) -> None:
        super().__init__(py_func)  # type: ignore[no-untyped-call]
        base, stamp = self._impl.filename_base, self._impl.locator.get_source_stamp()
        self._cache_file = KernelFile(self._cache_path, base, stamp)  # type: ignore[no-untyped-call]

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return (*super()._index_key(sig, codegen), ALIGNED, CALL_OF_POOL)  # type: ignore[no-untyped-call]


class Kernel(CPUDispatcher):
    """A compiled function of ours."""

    def enable_caching(self) -> None:
        """Keep what is compiled, where Numba finds a folder: a package on a read-only disk works without."""
        try:
            self._cache = KernelCache(self.py_func)
        except RuntimeError:
            if not _lost:
                _lost.append(
                    "compiled kernels cannot be kept, so every process compiles anew: expected a folder that "
                    "can be written; set NUMBA_CACHE_DIR to one"
                )
                warnings.warn(_lost[0], stacklevel=2)

    def compile(self, sig: Any) -> Any:
        """Compile for the types of `sig`, or load what was kept; functions are aligned meanwhile."""
        with global_compiler_lock:
            if _is_compiling[0]:
                return super().compile(sig)
            collects = gc.isenabled()
            gc.disable()  # all objects would be looked at again and again: a tenth of the time
            binding.set_option("sparsecast", ALIGNED)
            _is_compiling[0] = True
            try:
                return super().compile(sig)
            finally:
                _is_compiling[0] = False
                binding.set_option("sparsecast", USUAL)
                if collects:
                    gc.enable()


class InnerKernel(Kernel):
    """A compiled function of ours that has no way in from Python: only compiled code can call it."""

    def add_overload(self, cres: Any) -> None:
        """Keep what was compiled for compiled callers, out of reach of a call from Python."""
        self.overloads[tuple(cres.signature.args)] = cres

    def _compile_for_args(self, *args: Any, **kws: Any) -> Any:
        raise TypeError(
            f"{self.py_func.__name__} is called from Python: expected compiled code; declare it by njit"
        )


def njit(
    kind: type[Kernel] = Kernel, cache: bool = False, **options: Any
) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a kernel, with the options of `numba.njit`."""
    options["no_cfunc_wrapper"] = True  # nothing passes a kernel to C

    def declare(function: Callable[..., Any]) -> Any:
        kernel = numba.njit(**options)(function)
        if isinstance(kernel, CPUDispatcher):  # not where NUMBA_DISABLE_JIT leaves the function as it is
            kernel.__class__ = kind
            if cache:
                kernel.enable_caching()
        return kernel

    return declare


def inner(function: Callable[..., Any]) -> Any:
    """Compile what compiled code alone calls: the way in from Python takes a fourth of the time."""
    return njit(InnerKernel, cache=True, no_cpython_wrapper=True)(function)
