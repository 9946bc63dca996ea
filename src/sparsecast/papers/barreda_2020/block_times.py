"""Times of blocks of entries on one core: hot, as Barreda et al. measured them, and within a product.

Hot times repeat one block in place. What a block costs in a product is another matter: x and the arrays then
come from wherever the entries before left them. So the second kind reads the clock between runs of rows
within one product in plain CSR, whose kernel and order nothing changes. The times of all runs add up to that
of the product.

The clock is clock_gettime of POSIX: a clock of seconds, no counter of cycles. A reading of it costs tens of
nanoseconds, a block about a hundred, so that it is read between runs of RUN_BLOCKS blocks, at ends of rows.
What a reading takes is subtracted. Blocks share the time of the runs that they lie in by their entries. Times
of runs are low quantiles over many products; as quantiles do not add up, they are scaled to the time of a
product without clocks inside, by a factor that is kept.

Where a meter counts joules, some blocks are repeated in place for as long as it needs to see them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.devices.cpu.kernels.csr import VARIANTS, part_of_rows
from sparsecast.errors import DeviceError
from sparsecast.measuring.core_speed import CoreSpeed
from sparsecast.measuring.energy import TOTAL, Meter, spent_joules
from sparsecast.measuring.timing import LOW_SHARE
from sparsecast.papers.barreda_2020.entry_blocks import BLOCK_ENTRIES, evenly_spread, whole_blocks
from sparsecast.papers.barreda_2020.label_files import ENERGIES
from sparsecast.system.integers import unsigned
from sparsecast.system.jit import inner, njit

#: Number of the clock that no adjustment sets back.
_MONOTONIC = 6 if sys.platform == "darwin" else 1

_clock_gettime: Any = types.ExternalFunction("clock_gettime", types.int32(types.int32, types.uintp))

Floats = NDArray[np.float64]

#: Blocks between two readings of the clock, and products of which a run is timed at least.
RUN_BLOCKS, _LEAST_SWEEPS = 8, 5

#: Blocks repeated in place between two looks at the speed of the core, seconds to wait for full speed, and
#: trials at most, as a multiple of those that are to be at full speed.
_AT_ONCE, _WAIT_S, _MOST_TRIALS = 16, 0.05, 4

#: Seconds of the readings of one block in all, where the meter needs less for one.
_READINGS_S = 0.005


@dataclass(frozen=True, slots=True)
class LabelEffort:
    """How long to label each matrix.

    Each run is timed in `sweeps` products, fewer where they take longer than `most_s`. `hot_blocks` blocks
    are repeated in place, `hot_repeats` times between two readings of the clock; the shortest of `hot_trials`
    at full speed of the core counts. Barreda et al. repeated 10,000 times. A meter reads blocks for
    `energy_s` seconds, each for as long as it needs; two blocks at least.
    """

    sweeps: int = 40
    most_s: float = 0.4
    hot_blocks: int = 1024
    hot_repeats: int = 200
    hot_trials: int = 5
    energy_s: float = 3.0


DEFAULT_LABEL_EFFORT = LabelEffort()


def require_clock() -> None:
    if sys.platform == "win32":
        raise DeviceError(
            "times of blocks on Windows: expected the clock clock_gettime of POSIX; label on Linux or macOS"
        )


@njit(cache=True)
def _now(read):
    _clock_gettime(_MONOTONIC, read.ctypes.data)
    return read[0] * 1_000_000_000 + read[1]


@njit(cache=True)
def _clock_runs(stamps):
    read = np.zeros(2, dtype=np.int64)
    for number in range(len(stamps)):
        stamps[number] = _now(read)


def clock_s() -> float:
    """Return the seconds that one reading of the clock takes: the mean of many that nothing disturbed."""
    stamps = np.zeros(20_001, dtype=np.int64)
    _clock_runs(stamps[:10])
    _clock_runs(stamps)
    # Differences are whole nanoseconds, so that the mean says more than the median.
    steps = np.diff(stamps)
    return float(steps[steps <= 2 * np.median(steps)].mean()) * 1e-9


@njit(cache=True)
def _sweep(indptr, indices, data, loop, x, y, starts, stamps):
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


@inner
def _with_branches(rows, indices, data, x, y, first, last):
    total, row = data.dtype.type(0), rows[first]
    for k in range(first, last):
        if rows[k] != row:
            y[row] += total
            total = data.dtype.type(0)
            row = rows[k]
        total += data[k] * x[indices[k]]
    y[row] += total


@inner
def _without_branches(rows, indices, data, x, y, first, last):
    total, row = data.dtype.type(0), rows[first]
    for k in range(first, last):
        before = total if rows[k] == row else data.dtype.type(0)  # a selection of two numbers
        total = before + data[k] * x[indices[k]]
        row = rows[k]
        y[row] = total


@njit(cache=True)
def _hot(rows, indices, data, x, y, loop, firsts, entries, repeats, stamps):
    """Time each block `repeats` times in place; the length of `loop` says by which loop."""
    read = np.zeros(2, dtype=np.int64)
    for place in range(len(firsts)):
        first, last = firsts[place], firsts[place] + entries
        start = _now(read)
        for _ in range(repeats):
            if len(loop):
                _without_branches(rows, indices, data, x, y, first, last)
            else:
                _with_branches(rows, indices, data, x, y, first, last)
        stamps[place] = _now(read) - start


def run_starts(indptr: NDArray[Any], run_entries: int) -> NDArray[np.int64]:
    """Return the first rows of runs of at least `run_entries` entries, and the number of rows.

    Each run begins at the first row behind a multiple of `run_entries` and has entries; the last run may be
    shorter. A row that is longer is a run.
    """
    rows, nnz = len(indptr) - 1, int(indptr[-1])
    starts = np.searchsorted(indptr, np.arange(0, nnz, run_entries), side="left").astype(np.int64)
    starts = np.unique(np.append(0, starts))
    starts = starts[indptr[starts] < nnz]
    # Empty rows at the start of the matrix are no run of their own.
    starts = starts[np.append(True, np.diff(indptr[starts]) > 0)]
    return np.append(starts, rows)


def shared_by_entries(ends: NDArray[Any], seconds: Floats, blocks: int) -> Floats:
    """Return the seconds of blocks of BLOCK_ENTRIES entries that runs with known seconds are cut into.

    `ends`, of shape (runs + 1,), are the entries before each run, from 0 to all.
    """
    until = np.append(0.0, np.cumsum(seconds))
    return np.diff(np.interp(np.arange(blocks + 1) * BLOCK_ENTRIES, ends, until))


def streaming_timer(
    A: csr_array[Any], kernel: str, x: NDArray[Any], effort: LabelEffort
) -> Callable[[], tuple[Floats, float, float]]:
    """Return a function that measures products with clocks inside.

    It returns nanoseconds an entry of each block, the product's seconds, and the runs' sum over these.
    """

    def times(starts: NDArray[np.int64], sweeps: int) -> Floats:
        return run_times((A.indptr, A.indices, A.data), kernel, x, starts, sweeps)

    starts = run_starts(A.indptr, RUN_BLOCKS * BLOCK_ENTRIES)
    whole = np.array([0, A.shape[0]], dtype=np.int64)
    first_s = float(times(whole, _LEAST_SWEEPS).min())
    sweeps = min(effort.sweeps, max(_LEAST_SWEEPS, int(effort.most_s / first_s)))

    def measure() -> tuple[Floats, float, float]:
        clock = clock_s()
        product_s = float(np.quantile(times(whole, sweeps), LOW_SHARE)) - clock
        runs_s = np.quantile(times(starts, sweeps), LOW_SHARE, axis=0) - clock
        # The clock advances in whole nanoseconds: a run of a few entries may seem to take none.
        runs_s = np.maximum(runs_s, 1e-9)
        ratio = float(runs_s.sum()) / product_s
        blocks_s = shared_by_entries(A.indptr[starts], runs_s / ratio, whole_blocks(A.nnz))
        return blocks_s / BLOCK_ENTRIES * 1e9, product_s, ratio

    return measure


class HotBlocks:
    """Blocks of a matrix, by their numbers, that are repeated in place while the core runs at full speed.

    The kernel of Barreda et al. has no row pointers, but the row of each entry; the sum is added to y where
    the row changes. Without branches it is stored after each entry.

    On a core whose other thread works for others, a block takes up to 1.7 times as long: the labels would
    differ by that, and by hardly anything else. Without a `speed` all trials count. Of `tried` readings of
    blocks `slow` had no trial at full speed, and have the shortest or the last of the others.
    """

    def __init__(
        self,
        A: csr_array[Any],
        blocks: NDArray[np.int64],
        x: NDArray[Any],
        effort: LabelEffort,
        speed: CoreSpeed | None = None,
        *,
        has_branches: bool = True,
    ) -> None:
        self.blocks, self._x, self._effort, self._has_branches = blocks, x, effort, has_branches
        self._speed, self.slow, self.tried = speed, 0, 0
        entries = (blocks[:, None] * BLOCK_ENTRIES + np.arange(BLOCK_ENTRIES)).ravel()
        row = np.searchsorted(A.indptr, entries, side="right").astype(A.indices.dtype)
        row -= np.repeat(row[::BLOCK_ENTRIES], BLOCK_ENTRIES)  # each block begins at row 0 of y
        self._entries = row, A.indices[entries], A.data[entries]

    def _seconds(self, first: int, last: int, repeats: int) -> Floats:
        """Return the seconds of blocks first to last, repeated so often between two readings of the clock."""
        require_clock()
        places = slice(first * BLOCK_ENTRIES, last * BLOCK_ENTRIES)
        rows, indices, data = (array[places] for array in self._entries)
        starts = np.arange(last - first, dtype=np.int64) * BLOCK_ENTRIES
        y = np.zeros(int(rows.max(initial=0)) + 1, dtype=data.dtype)
        stamps = np.zeros(len(starts), dtype=np.int64)
        arrays = unsigned(rows), unsigned(indices), data, self._x, y, () if self._has_branches else (0,)
        _hot(*arrays, starts[:1], BLOCK_ENTRIES, 2, stamps[:1].copy())
        _hot(*arrays, starts, BLOCK_ENTRIES, repeats, stamps)
        return np.asarray(stamps * 1e-9 / repeats)

    def measure(self) -> Floats:
        """Return nanoseconds an entry of each block: the least of its trials at full speed, if any were."""
        effort = self._effort
        shortest = np.full((2, len(self.blocks)), np.inf)  # of all trials, and of those at full speed
        for first in range(0, len(self.blocks), _AT_ONCE):
            part = slice(first, min(first + _AT_ONCE, len(self.blocks)))
            at_full_speed = 0
            for _ in range(_MOST_TRIALS * effort.hot_trials):
                run = partial(self._seconds, part.start, part.stop, effort.hot_repeats)
                seconds, is_full = self._at_full_speed(run)
                for kept in shortest[: 1 + is_full]:
                    kept[part] = np.minimum(kept[part], seconds)
                at_full_speed += is_full
                if at_full_speed == effort.hot_trials:
                    break
            self._count(part.stop - part.start, at_full_speed > 0)
        seconds = np.where(np.isfinite(shortest[1]), shortest[1], shortest[0])
        return np.asarray(seconds / BLOCK_ENTRIES * 1e9)

    def _at_full_speed(self, run: Callable[[], Any]) -> tuple[Any, bool]:
        """Run once the core is at full speed; return the result, and whether it was before and after."""
        if self._speed is None:
            return run(), True
        is_ready, _ = self._speed.wait(_WAIT_S * self._speed.patience)
        result = run()
        return result, is_ready and self._speed.is_full()

    def _count(self, blocks: int, is_full: bool) -> None:
        self.tried += blocks
        self.slow += 0 if is_full else blocks

    def joules(self, place: int, repeats: int, readings: int, meter: Meter) -> list[float] | None:
        """Return the joules of one block by ENERGIES, repeated so often; None where nothing was counted.

        They are of the reading with the fewest, as times are of the shortest, at full speed if any was.
        """
        run = partial(self._seconds, place, place + 1, repeats)
        fewest: dict[bool, dict[str, float]] = {}
        at_full_speed = 0
        for _ in range(_MOST_TRIALS * readings):
            used, is_full = self._at_full_speed(lambda: spent_joules(meter, run, repeats * BLOCK_ENTRIES))
            if TOTAL in used and used[TOTAL] <= fewest.get(is_full, used)[TOTAL]:
                fewest[is_full] = used
            at_full_speed += is_full
            if at_full_speed == readings:
                break
        self._count(1, at_full_speed > 0)
        found = fewest.get(True) or fewest.get(False)
        return [found.get(name, np.nan) / repeats for name in ENERGIES] if found else None

    def energies(self, ns: Floats, meter: Meter | None) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return blocks that a meter counted twice, and their nanojoules an entry.

        These have shape (2, 3, blocks): first and again, by ENERGIES. Each block is
        repeated for as long as the meter needs; it takes `ns` nanoseconds an entry.
        """
        counted: dict[int, Any] = {}
        count = readings = 0
        if meter is not None:
            readings = max(1, round(_READINGS_S / meter.run_s))
            count = max(2, int(self._effort.energy_s / (2 * readings * meter.run_s)))
        for place in evenly_spread(len(self.blocks), count).tolist():
            assert meter is not None
            repeats = max(1, round(meter.run_s / (ns[place] * BLOCK_ENTRIES * 1e-9)))
            twice = [self.joules(place, repeats, readings, meter) for _ in range(2)]
            if None not in twice:
                counted[int(self.blocks[place])] = twice
        joules = np.array(list(counted.values()), dtype=float).reshape(-1, 2, len(ENERGIES))
        values = np.moveaxis(joules, 0, 2) / BLOCK_ENTRIES * 1e9
        return np.array(list(counted), dtype=np.int64), values.astype(np.float32)
