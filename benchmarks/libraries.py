"""Products of other libraries, timed in turn with ours."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter, sleep
from typing import Any

from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.formats.libraries import LIBRARIES
from sparsecast.measuring.timing import Call, HostClock, Timing

#: In the order in which they are sampled: MKL last, whose threads may spin longest after a call.
IN_ORDER = sorted(LIBRARIES.names(), key=lambda name: (name == "mkl", name))

#: Seconds after which the threads of MKL have stopped spinning.
SPIN_S = 0.25

#: Seconds of untimed calls before the samples of one library, and of a sample, and samples in a row.
_AWAKE_S, _SAMPLE_S, _SAMPLES = 0.01, 0.001, 4


def library_call(name: str, A: csr_array[Any], x: NDArray[Any], out: NDArray[Any], threads: int) -> Call:
    """Return the product of a library, written into `out`.

    Raises
    ------
    MissingLibraryError, FormatError
        If it is not installed, or does not take the matrix.
    """
    library = LIBRARIES.get(name)
    library.refuse_missing()
    library.refuse_types(A.dtype.name, 8 * A.indices.itemsize, 1)
    product = library.from_csr(A).on_threads(threads)
    return lambda: product(x, out)


def in_turn(calls: Mapping[str, Call], rounds: int, pause_s: float) -> dict[str, Timing]:
    """Return the Timings of calls that take turns, with a pause after the last one.

    Before its samples a call is repeated untimed, until the threads of the library before it are asleep and
    its own are awake. Libraries whose threads spin for longer go last, before the pause.
    """
    clock, counts = HostClock(), {}
    for name, call in calls.items():
        call()
        counts[name] = max(1, round(_SAMPLE_S / min(clock.seconds(call, 1) for _ in range(5))))
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            end = perf_counter() + _AWAKE_S
            while perf_counter() < end:
                call()
            count = counts[name]
            samples[name] += [clock.seconds(call, count) / count for _ in range(_SAMPLES)]
        sleep(pause_s)
    return {name: Timing.of(tuple(values)) for name, values in samples.items()}
