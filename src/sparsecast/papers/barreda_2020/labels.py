"""Measuring labels of blocks: hot, as Barreda et al. did, and streaming, within a product.

A reading of the clock costs tens of nanoseconds, a block about a hundred, so that the clock is read between
runs of RUN_BLOCKS blocks, at ends of rows. What a reading takes is subtracted. Blocks share the time of the
runs that they lie in by their entries. Times of runs are low quantiles over many products; as quantiles do
not add up, they are scaled to the time of a product without clocks inside, by a factor that is kept.

Where a meter counts joules, some blocks are repeated in place for as long as it needs to see them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.devices.binding import prepared
from sparsecast.devices.product_timer import right_hand_side
from sparsecast.devices.target import Target
from sparsecast.errors import InputError
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.machines.machine import PROCESSOR, Machine
from sparsecast.matrices.problem import Problem
from sparsecast.measuring.energy import Meter, spent_joules
from sparsecast.measuring.timing import LOW_SHARE
from sparsecast.papers.barreda_2020.block_times import clock_s, hot_times, run_times
from sparsecast.papers.barreda_2020.features.entry_blocks import (
    BLOCK_ENTRIES,
    describe_blocks,
    evenly_spread,
    whole_blocks,
)
from sparsecast.papers.barreda_2020.label_files import ENERGIES, BlockLabels
from sparsecast.records import Candidate
from sparsecast.system.version import VERSION

Floats = NDArray[np.float64]

#: Blocks between two readings of the clock.
RUN_BLOCKS = 8


@dataclass(frozen=True, slots=True)
class LabelEffort:
    """How long to label each matrix.

    Attributes
    ----------
    sweeps : int
        Products of which each run is timed, fewer where they take longer than `most_s`.
    most_s : float
    hot_blocks, hot_repeats, hot_trials : int
        Blocks of a matrix that are repeated in place, how often between two readings of the clock, and
        readings, of which the shortest counts. Barreda et al. repeated 10,000 times.
    energy_s : float
        Seconds of a matrix in which a meter reads blocks, each for as long as it needs; two blocks at least.
    """

    sweeps: int = 40
    most_s: float = 0.4
    hot_blocks: int = 1024
    hot_repeats: int = 200
    hot_trials: int = 5
    energy_s: float = 3.0


DEFAULT_LABEL_EFFORT = LabelEffort()


@dataclass(frozen=True, slots=True)
class LabelFrequency:
    """The frequency that labels are of.

    Attributes
    ----------
    ghz, source
        `frequency_ghz` and `frequency_source` of the labels.
    slowdown : float
        Factor of the times: above 1 where the frequency is modelled.
    """

    ghz: float | None = None
    source: str | None = None
    slowdown: float = 1.0

    @property
    def set_hz(self) -> float | None:
        """What the cores are to be held at; None where nothing is set."""
        return 1e9 * self.ghz if self.ghz is not None and self.source == "set" else None


OWN_FREQUENCY = LabelFrequency()

_LEAST_SWEEPS = 5


def label_blocks(
    problem: Problem,
    machine: Machine,
    dtype: str | None = None,
    effort: LabelEffort = DEFAULT_LABEL_EFFORT,
    meter: Meter | None = None,
    frequency: LabelFrequency = OWN_FREQUENCY,
) -> BlockLabels:
    """Measure what the blocks of a matrix take on one core of this machine, everything twice.

    The values are of `dtype`, by default that of the matrix; `meter` counts the joules of blocks, which have
    none without one, and `frequency` is that of the cores now.

    Raises
    ------
    InputError
        If the matrix has complex values or less than a block of entries.
    DeviceError
        Where compiled loops have no clock to read.
    """
    A = problem.matrix
    dtype = A.dtype.name if dtype is None else dtype
    if np.dtype(dtype).kind != "f":
        raise InputError(
            f"{problem.name} with {dtype} values: expected real ones, which networks forecast; leave it out"
        )
    if A.nnz < BLOCK_ENTRIES:
        raise InputError(
            f"{problem.name} has {A.nnz} entries: expected at least one block of {BLOCK_ENTRIES}; leave it "
            f"out"
        )
    structure, candidate = problem.sampled_structure, labelled_way(problem, machine, dtype)
    A = prepared(A, dtype, candidate.index_bits)
    blocks = whole_blocks(A.nnz)
    slowdown = frequency.slowdown
    x = right_hand_side(A.shape[1], dtype)
    streaming = _streaming(A, candidate.kernel, x, effort)
    hot = _Hot(A, evenly_spread(blocks, effort.hot_blocks), x, effort)
    (streaming_ns, product_s, ratio), hot_ns = streaming(), hot.measure()
    (streaming_again_ns, product_again_s, _), hot_again_ns = streaming(), hot.measure()
    energy_blocks, energy_nj = _energies(hot, hot_ns, meter)
    return BlockLabels(
        matrix=problem.specification,
        name=problem.name,
        group=problem.group,
        dtype=dtype,
        kernel=candidate.kernel,
        rows=structure.rows,
        cols=structure.cols,
        nnz=structure.nnz,
        index_bits=candidate.index_bits,
        mispredicted_rows=structure.row_lengths.mispredicted or 0,
        product_s=slowdown * product_s,
        product_again_s=slowdown * product_again_s,
        runs_over_product=ratio,
        machine=machine.name,
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        version=VERSION,
        energy_source=meter.source if meter and len(energy_blocks) else None,
        frequency_ghz=frequency.ghz,
        frequency_source=frequency.source,
        features=describe_blocks(A.indptr, A.indices, np.arange(blocks)).astype(np.float32),
        streaming_ns=(slowdown * streaming_ns).astype(np.float32),
        streaming_again_ns=(slowdown * streaming_again_ns).astype(np.float32),
        hot_blocks=hot.blocks,
        hot_ns=(slowdown * hot_ns).astype(np.float32),
        hot_again_ns=(slowdown * hot_again_ns).astype(np.float32),
        energy_blocks=energy_blocks,
        energy_nj=energy_nj[0],
        energy_again_nj=energy_nj[1],
    )


def labelled_way(problem: Problem, machine: Machine, dtype: str) -> Candidate:
    """Return the Candidate whose products are labelled: CSR on one thread, with the kernel of the rule."""
    A = problem.matrix
    bits = 8 * max(A.indptr.itemsize, A.indices.itemsize)
    blocks = RowBlocks.of(problem.sampled_structure)
    return Target(PROCESSOR, dtype, bits, 1).candidate("csr", blocks, machine)


def run_starts(indptr: NDArray[Any], run_entries: int) -> NDArray[np.int64]:
    """Return the first rows of runs of at least so many entries, and the number of rows.

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


def _streaming(
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


@dataclass
class _Hot:
    """Blocks of a matrix that are repeated in place."""

    A: csr_array[Any]
    blocks: NDArray[np.int64]
    x: NDArray[Any]
    effort: LabelEffort

    def measure(self) -> Floats:
        """Return nanoseconds an entry of each block."""
        arrays = self._rows, self.A.indices, self.A.data, self.x, self.blocks * BLOCK_ENTRIES
        seconds = hot_times(*arrays, BLOCK_ENTRIES, self.effort.hot_repeats, self.effort.hot_trials)
        return np.asarray(seconds.min(axis=1) / BLOCK_ENTRIES * 1e9)

    @cached_property
    def _rows(self) -> NDArray[Any]:
        """The row of each entry."""
        lengths = np.diff(self.A.indptr)
        return np.repeat(np.arange(len(lengths), dtype=self.A.indices.dtype), lengths)

    def joules(self, block: int, repeats: int, meter: Meter) -> list[float] | None:
        """Return the joules of one block by ENERGIES, repeated so often; None where nothing was counted."""
        places = slice(block * BLOCK_ENTRIES, (block + 1) * BLOCK_ENTRIES)
        rows, indices, data = self._rows[places], self.A.indices[places], self.A.data[places]
        # Rows begin at 0: else the time to make y would be read as well.
        arrays = rows - rows[0], indices, data, self.x, np.zeros(1, dtype=np.int64)
        entries = repeats * BLOCK_ENTRIES
        used = spent_joules(meter, lambda: hot_times(*arrays, BLOCK_ENTRIES, repeats, 1), entries)
        return [used.get(name, np.nan) / repeats for name in ENERGIES] if used else None


def _energies(hot: _Hot, ns: Floats, meter: Meter | None) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return blocks of `hot` that a meter counted twice, and their nanojoules an entry.

    These have shape (2, 3, blocks): first and again, by ENERGIES. Each block, which takes `ns` nanoseconds an
    entry, is repeated for as long as the meter needs.
    """
    blocks: list[int] = []
    energies: list[list[list[float]]] = []
    count = 0 if meter is None else max(2, int(hot.effort.energy_s / (2 * meter.run_s)))
    for place in evenly_spread(len(hot.blocks), count).tolist():
        assert meter is not None
        block = int(hot.blocks[place])
        repeats = max(1, round(meter.run_s / (ns[place] * BLOCK_ENTRIES * 1e-9)))
        counted = [joules for _ in range(2) if (joules := hot.joules(block, repeats, meter)) is not None]
        if len(counted) == 2:
            blocks.append(block)
            energies.append(counted)
    values = np.moveaxis(np.array(energies, dtype=float).reshape(-1, 2, len(ENERGIES)), 0, 2)
    values = values / BLOCK_ENTRIES * 1e9
    return np.array(blocks, dtype=np.int64), values.astype(np.float32)
