"""Compiles kernels in several processes, which share them through Numba's cache on disk."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from time import perf_counter

from sparsecast.devices import DEVICES
from sparsecast.devices.binding import warm_up
from sparsecast.formats import FORMATS
from sparsecast.records import Candidate
from sparsecast.system.jit import lost_kernels

#: A kernel that takes longer was compiled, not found in the cache.
_COLD_S = 0.3

_COMPILE = "from sparsecast.devices.compiling import compile_as_told; compile_as_told()"


@contextmanager
def compiled_beside(candidates: Sequence[Candidate], processes: int) -> Iterator[None]:
    """Compile the kernels of `candidates` in other processes, from the last one on, during the body.

    The body compiles them from the first one on. It also compiles the part of a process that fails. At most
    `processes` processes run, and end with the body.
    """
    # Not multiprocessing: it would run the main module of our caller again. The path of modules is that of
    # this process, without the working directory.
    command = [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path}; {_COMPILE}"]
    processes = min(processes, len(candidates))
    helpers = []
    try:
        for part in range(processes):
            own_part = [candidate.to_dict() for candidate in candidates[::-1][part::processes]]
            helper = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            helpers.append(helper)
            assert helper.stdin is not None
            with (
                suppress(BrokenPipeError),
                helper.stdin as pipe,
            ):  # the body compiles the part of a lost process
                pipe.write(json.dumps(own_part).encode())
        yield
    finally:
        for helper in helpers:
            helper.kill()
            helper.wait()


def compiled_in_turn(candidates: Sequence[Candidate], processes: int) -> Generator[Candidate, None, None]:
    """Compile the kernels of `candidates`, and yield each when it is ready.

    Once a kernel is missing from the cache and other processes can compile it, they compile from the end of
    the list on, `processes` in all with this one.
    """
    with ExitStack() as helpers:
        is_helped = False
        for number, candidate in enumerate(candidates):
            start = perf_counter()
            warm_up(candidate)
            is_slow = perf_counter() - start > _COLD_S
            is_library = FORMATS.get(candidate.format).is_library  # which has nothing to compile
            is_cold = is_slow and DEVICES.get(candidate.device).compiles_apart and not lost_kernels()
            if is_cold and not is_helped and not is_library:
                rest = [each for each in candidates[number + 1 :] if not FORMATS.get(each.format).is_library]
                helpers.enter_context(compiled_beside(rest, processes - 1))
                is_helped = True
            yield candidate


def compile_as_told() -> None:
    """Compile the kernels of the Candidates on standard input."""
    for stored in json.load(sys.stdin):
        warm_up(Candidate.from_dict(stored))
