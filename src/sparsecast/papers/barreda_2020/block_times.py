"""Times of blocks of entries on one core: hot, as Barreda et al. measured them, and within a product.

Hot times repeat one block in place. What a block costs in a product is another matter: x and the arrays then
come from wherever the entries before left them. So the second kind reads the clock between runs of rows
within one product in plain CSR, whose kernel and order nothing changes. The times of all runs add up to that
of the product.

The clock is clock_gettime of POSIX: a clock of seconds, no counter of cycles.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from sparsecast.devices.cpu.kernels.csr import VARIANTS, part_of_rows
from sparsecast.errors import DeviceError
from sparsecast.system.integers import unsigned
from sparsecast.system.jit import njit

#: Number of the clock that no adjustment sets back.
_MONOTONIC = 6 if sys.platform == "darwin" else 1

_clock_gettime: Any = types.ExternalFunction("clock_gettime", types.int32(types.int32, types.uintp))

Floats = NDArray[np.float64]


def require_clock() -> None:
    """Raise a DeviceError where compiled loops have no clock to read."""
    if sys.platform == "win32":
        raise DeviceError(
            "times of blocks on Windows: expected the clock clock_gettime of POSIX; label on Linux or macOS"
        )


@njit(cache=True)
def _now(read):  # type: ignore[no-untyped-def]
    _clock_gettime(_MONOTONIC, read.ctypes.data)
    return read[0] * 1_000_000_000 + read[1]


@njit(cache=True)
def _clock_runs(stamps):  # type: ignore[no-untyped-def]
    read = np.zeros(2, dtype=np.int64)
    for number in range(len(stamps)):
        stamps[number] = _now(read)


def clock_s() -> float:
    """Return the seconds that one reading of the clock takes: the median of many."""
    stamps = np.zeros(20_001, dtype=np.int64)
    _clock_runs(stamps[:10])
    _clock_runs(stamps)
    # Differences are whole nanoseconds, so the mean of what is not disturbed says more than the median.
    steps = np.diff(stamps)
    return float(steps[steps <= 2 * np.median(steps)].mean()) * 1e-9


@njit(cache=True)
def _sweep(indptr, indices, data, loop, x, y, starts, stamps):  # type: ignore[no-untyped-def]
    read = np.zeros(2, dtype=np.int64)
    stamps[0] = _now(read)
    for part in range(len(starts) - 1):
        part_of_rows(part, indptr, indices, data, (), loop, x, y, starts)
        stamps[part + 1] = _now(read)


def run_times(
    arrays: tuple[NDArray[Any], NDArray[Any], NDArray[Any]],
    variant: str,
    x: NDArray[Any],
    starts: NDArray[np.int64],
    sweeps: int,
) -> Floats:
    """Return the seconds of runs of rows within products with one thread, shape (sweeps, runs).

    What a reading of the clock takes is not subtracted. One more product before the others is not timed.
    `arrays` are indptr, indices and data of a CSR matrix with real values; `starts` the first row of each
    run, and the number of rows.
    """
    require_clock()
    indptr, indices = unsigned(arrays[0]), unsigned(arrays[1])
    bounds = starts.astype(indptr.dtype)
    y, loop = np.zeros(len(indptr) - 1, dtype=arrays[2].dtype), (0,) * VARIANTS.index(variant)
    stamps = np.zeros((sweeps + 1, len(starts)), dtype=np.int64)
    for row in stamps:
        _sweep(indptr, indices, arrays[2], loop, x, y, bounds, row)
    return np.asarray(np.diff(stamps[1:], axis=1) * 1e-9)


@njit(cache=True)
def _hot(rows, indices, data, x, y, firsts, entries, repeats, stamps):  # type: ignore[no-untyped-def]
    """Time each block `repeats` times in place, `trials` times: rows of `stamps`."""
    read = np.zeros(2, dtype=np.int64)
    for place in range(len(firsts)):
        first, last = firsts[place], firsts[place] + entries
        for trial in range(stamps.shape[1]):
            start = _now(read)
            for _ in range(repeats):
                total = data.dtype.type(0)
                row = rows[first]
                for k in range(first, last):
                    if rows[k] != row:
                        y[row] += total
                        total = data.dtype.type(0)
                        row = rows[k]
                    total += data[k] * x[indices[k]]
                y[row] += total
            stamps[place, trial] = _now(read) - start


def hot_times(
    rows: NDArray[Any],
    indices: NDArray[Any],
    data: NDArray[Any],
    x: NDArray[Any],
    firsts: NDArray[np.int64],
    entries: int,
    repeats: int,
    trials: int,
) -> Floats:
    """Return the seconds of blocks that are repeated in place, shape (blocks, trials), as Barreda et al.

    Their kernel has no row pointers, but the row of each entry; the sum is added to y where the row changes.
    `firsts` are the first entry of each block of so many entries; `repeats` its repetitions between two
    readings of the clock.
    """
    require_clock()
    y = np.zeros(int(rows.max(initial=0)) + 1, dtype=data.dtype)
    stamps = np.zeros((len(firsts), trials), dtype=np.int64)
    arrays = unsigned(rows), unsigned(indices), data, x, y
    _hot(*arrays, firsts[:1], entries, 2, stamps[:1].copy())
    _hot(*arrays, firsts, entries, repeats, stamps)
    return np.asarray(stamps * 1e-9 / repeats)
