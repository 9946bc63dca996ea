"""A format for each row block: the dynamic programme of Guo, Wang and Chen (2014), section 4.

The paper's programme looks at N (N + 1) / 2 blocks of N strips. Here N is bounded: a matrix with more than
MAX_STRIPS strips is cut into coarser ones, as the paper itself does on large matrices with strips of 32 times
the rows. The guarantee: the plan is the best, in the model's eyes, of all plans whose cuts are multiples of
the coarser strip; one block is always among them. Planning then costs one pass over the row pointers and at
most MAX_STRIPS**2 / 2 blocks, each a difference of prefix sums, whatever the rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.errors import FeatureError, FormatError
from sparsecast.features.row_blocks import RowBlocks, StripStatistics
from sparsecast.features.structure import Structure
from sparsecast.formats import FORMATS
from sparsecast.machines.machine import Machine
from sparsecast.models.model import Model
from sparsecast.planning.candidates import Target
from sparsecast.records import Candidate

#: Most strips the programme is run on: 131,000 blocks, a few tenths of a second.
MAX_STRIPS = 512

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PlannedBlock:
    """One row block and how it will be done.

    Attributes
    ----------
    first_row, last_row : int
        First and last row, both of the block; last_row is first_row - 1 for a matrix without rows.
    candidate : Candidate
    time_s, convert_s : float
        Forecasts of one product with the block, and of building its format.
    """

    first_row: int
    last_row: int
    candidate: Candidate
    time_s: float
    convert_s: float


@dataclass(frozen=True, slots=True)
class _BestSplits:
    """Tables of the dynamic programme.

    Attributes
    ----------
    cost_s : float array of shape (strips + 1,)
        T[1, j] of Fig. 8, with T[1, 0] = 0.
    split : int array of shape (strips + 1,)
        S[1, j] of Fig. 11: strips before the last block of the best plan for the first j strips.
    format_index : int array of shape (strips + 1,)
        F of that last block.
    """

    cost_s: Floats
    split: NDArray[np.int64]
    format_index: NDArray[np.int64]


def strip_statistics(indptr: NDArray[Any], matrix: Structure, strip_rows: int) -> StripStatistics:
    """Return the statistics of a matrix' strips, coarsened until there are at most MAX_STRIPS of them.

    Parameters
    ----------
    indptr : integer array of shape (rows + 1,)
    matrix : Structure
    strip_rows : int
        Rows of the model's strip (S_CSR in the paper).
    """
    strips = math.ceil((len(indptr) - 1) / strip_rows)
    coarsening = max(1, math.ceil(strips / MAX_STRIPS))
    return StripStatistics.of(indptr, matrix, strip_rows * coarsening)


def best_blocks(
    statistics: StripStatistics, model: Model, target: Target, machine: Machine, iterations: int
) -> list[PlannedBlock]:
    """Return the row blocks with the least forecast time of `iterations` products and the conversions.

    Parameters
    ----------
    statistics : StripStatistics
        Of the matrix; its strips are the cuts that may be made.
    model : Model
        Forecasts a block as if it were a matrix.
    target : Target
        Device, dtype and threads of every block.
    machine : Machine
        That is asked about.
    iterations : int
        Products that each conversion is paid for by.
    """
    formats = _open_formats(statistics, model, target)
    tables = _best_splits(statistics, model, formats, target, machine, iterations)
    blocks: list[PlannedBlock] = []
    end = statistics.strips
    while end > 0:  # PRINT_OPTIMAL_STRATEGY of Fig. 11, from the last block to the first
        start = int(tables.split[end])
        name = formats[int(tables.format_index[end])]
        block = statistics.blocks(np.array([start]), np.array([end]))
        blocks.append(planned_block(block, int(statistics.bounds[start]), name, model, target, machine))
        end = start
    return blocks[::-1]


def best_single_block(
    statistics: StripStatistics, model: Model, target: Target, machine: Machine, iterations: int
) -> PlannedBlock:
    """Return all rows in one block, in the format that `best_blocks` would choose for it."""
    block = statistics.blocks(np.array([0]), np.array([statistics.strips]))
    formats = _open_formats(statistics, model, target)
    costs = [_block_cost(model, name, block, target, machine, iterations)[0] for name in formats]
    return planned_block(block, 0, formats[int(np.argmin(costs))], model, target, machine)


def planned_block(
    block: RowBlocks, first_row: int, format_name: str, model: Model, target: Target, machine: Machine
) -> PlannedBlock:
    """Return one block, from `first_row` on, with the forecasts of a format."""
    candidate = target.candidate(format_name, block, machine, model.kernels(format_name))
    return PlannedBlock(
        first_row,
        first_row + int(block.rows[0]) - 1,
        candidate,
        float(model.values(candidate, block)[0]),
        float(model.conversion_.seconds(candidate, block)[0]),
    )


def _open_formats(statistics: StripStatistics, model: Model, target: Target) -> list[str]:
    """Return the formats that the model knows and that are not known to lose on the whole matrix."""
    whole = RowBlocks.of(statistics.matrix)
    formats = []
    for name in model.formats():
        try:
            FORMATS.get(name).refuse_unsuited(whole, target.value_bytes, target.index_bits // 8)
        except (FeatureError, FormatError):
            continue
        formats.append(name)
    return formats


def _best_splits(
    statistics: StripStatistics,
    model: Model,
    formats: list[str],
    target: Target,
    machine: Machine,
    iterations: int,
) -> _BestSplits:
    """Run SPMV_OPTIMAL_SOLUTION of Fig. 11; all blocks that end at one strip are forecast at once."""
    strips = statistics.strips
    cost = np.zeros(strips + 1)
    split = np.zeros(strips + 1, dtype=np.int64)
    format_index = np.zeros(strips + 1, dtype=np.int64)
    for j in range(1, strips + 1):  # lines 03 to 13
        starts = np.arange(j)
        blocks = statistics.blocks(starts, np.full(j, j))
        costs = np.array([_block_cost(model, name, blocks, target, machine, iterations) for name in formats])
        best = costs.argmin(axis=0)  # F[k + 1, j]
        total = cost[:j] + costs[best, starts]  # line 07: q = T[1, k] + E[k + 1, j], k = 0 for one block
        # Of equals the fewest blocks: argmin takes the smallest k, and k = 0 is the block of all strips.
        k = int(total.argmin())
        cost[j], split[j], format_index[j] = total[k], k, best[k]
    return _BestSplits(cost, split, format_index)


def _block_cost(
    model: Model, format_name: str, blocks: RowBlocks, target: Target, machine: Machine, iterations: int
) -> Floats:
    """Return E[i, j] for one format: the time of a product, with its share of the conversion."""
    storage = FORMATS.get(format_name)
    first = target.candidate(format_name, blocks, machine, model.kernels(format_name))
    product_s = _product_s(model, first, blocks, target, machine)
    cost = product_s + model.conversion_.seconds(first, blocks) / iterations
    return np.where(storage.can_hold(blocks), cost, np.inf)


def _product_s(model: Model, first: Candidate, blocks: RowBlocks, target: Target, machine: Machine) -> Floats:
    """Return the forecast of each block with its kernel; `first` is the Candidate of the first block."""
    fitted = model.kernels(first.format)
    if len(fitted) < 2:
        return model.values(first, blocks)
    chosen = target.kernels(first.format, blocks, machine, fitted)
    time_s = np.empty(len(blocks.rows))
    for kernel in np.unique(chosen):
        is_done_so = chosen == kernel
        time_s[is_done_so] = model.values(replace(first, kernel=str(kernel)), blocks)[is_done_so]
    return time_s
