"""A format for each row block: the dynamic programme of Guo, Wang and Chen (2014), section 4.

The paper's programme looks at N (N + 1) / 2 blocks of N strips. Here N is bounded: a matrix with more than
MAX_STRIPS strips is cut into coarser ones, as the paper itself does on large matrices with strips of 32 times
the rows. The guarantee: the plan is the best, in the model's eyes, of all plans whose cuts are multiples of
the coarser strip; one block is always among them. Planning then costs one pass over the row pointers and at
most MAX_STRIPS**2 / 2 blocks, each a difference of prefix sums, whatever the rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.devices.target import Target, memory_bytes
from sparsecast.errors import FeatureError, FormatError
from sparsecast.features.row_blocks import RowBlocks, StripStatistics
from sparsecast.features.structure import Structure
from sparsecast.formats import FORMATS
from sparsecast.machines.machine import Machine
from sparsecast.models.forecaster import Forecaster
from sparsecast.records import Candidate
from sparsecast.results.plan import PlannedBlock

#: Most strips the programme is run on: 131,000 blocks, a few tenths of a second.
MAX_STRIPS = 512

#: Blocks that are forecast at once: for fewer, the calls take longer than the arithmetic.
_BLOCKS_AT_ONCE = 2048

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Costs:
    """What row blocks cost in the eyes of a fitted model, which takes a block for a matrix.

    `machine` is the one that is asked about; each conversion is paid for by `products` products. They may
    be infinitely many: then conversions do not count.
    """

    model: Forecaster
    target: Target
    machine: Machine
    products: float

    def planned(
        self, block: RowBlocks, first_row: int, format_name: str, is_full: bool = False
    ) -> PlannedBlock:
        """Return one block, from `first_row` on, with the forecasts of a format.

        Its entries are stored in full, or narrower where that is forecast to take less time; `is_full` rules
        that out.
        """
        ways = self._candidates(block, format_name)
        candidate = ways[0] if is_full else min(ways, key=lambda way: float(self._of_way(way, block)[0]))
        return PlannedBlock(
            first_row,
            first_row + int(block.rows[0]) - 1,
            candidate,
            float(self.model.values(candidate, block)[0]),
            float(self.model.conversion_.seconds(candidate, block)[0]),
            *memory_bytes(candidate, block),
        )

    def open_formats(self, matrix: Structure) -> list[str]:
        """Return the formats that the model knows and that are not known to lose on the whole matrix."""
        whole = RowBlocks.of(matrix)
        formats = []
        for name in self.model.formats():
            with suppress(FeatureError, FormatError):
                self.target.refuse_unsuited(name, whole)
                formats.append(name)
        return formats

    def of_blocks(self, blocks: RowBlocks, format_name: str) -> Floats:
        """Return E[i, j] for one format: the time of a product, with its share of the conversion."""
        of_ways = [self._of_way(first, blocks) for first in self._candidates(blocks, format_name)]
        return np.where(FORMATS.get(format_name).can_hold(blocks), np.min(of_ways, axis=0), np.inf)

    def of_ends(self, statistics: StripStatistics, ends: NDArray[np.int64], formats: Sequence[str]) -> Floats:
        """Return E[i, j] for some j and all i, an element of the second axis each, and each format.

        Blocks that end at one strip are done as the longest of them: with its kernel.
        """
        blocks = _blocks_that_end(statistics, ends)
        longest = statistics.blocks(np.zeros_like(ends), ends)
        found = np.empty((len(formats), int(ends.sum())))
        for own, name in zip(found, formats, strict=True):
            kernels = self.target.kernels(name, longest, self.machine, self.model.kernels(name))
            for kernel in np.unique(kernels):
                is_done_so = kernels == kernel
                some = blocks if is_done_so.all() else _blocks_that_end(statistics, ends[is_done_so])
                own[np.repeat(is_done_so, ends)] = self.of_blocks(some, name)
        return found

    def _candidates(self, blocks: RowBlocks, format_name: str) -> list[Candidate]:
        """Return the Candidates of the first block: in full, and as narrow as the whole matrix can be."""
        of_format = format_name, blocks, self.machine, self.model.kernels(format_name)
        candidates = [self.target.candidate(*of_format)]
        if narrow := self.target.narrow(format_name, blocks.matrix):
            candidates += filter(self.model.serves, [self.target.candidate(*of_format, narrow)])
        return candidates

    def _of_way(self, first: Candidate, blocks: RowBlocks) -> Floats:
        """Return the forecast of each block with its kernel, and with its share of the conversion."""
        fitted, conversion_s = self.model.kernels(first.format), self.model.conversion_.seconds(first, blocks)
        if len(fitted) < 2:
            return self.model.values(first, blocks) + conversion_s / self.products
        chosen = self.target.kernels(first.format, blocks, self.machine, fitted)
        time_s = np.empty(len(blocks.rows))
        for kernel in np.unique(chosen):
            is_done_so = chosen == kernel
            time_s[is_done_so] = self.model.values(replace(first, kernel=str(kernel)), blocks)[is_done_so]
        return time_s + conversion_s / self.products


def at_most(strips: int) -> int:
    """Return how many strips make one, so that there are at most MAX_STRIPS."""
    return max(1, math.ceil(strips / MAX_STRIPS))


def strip_statistics(
    indptr: NDArray[Any], matrix: Structure, strip_rows: int, coarsening: Callable[[int], int] = at_most
) -> StripStatistics:
    """Return the statistics of a matrix' strips, each as many strips of the model as `coarsening` says.

    `strip_rows` are those of the model's strip: S_CSR in the paper.
    """
    strips = math.ceil((len(indptr) - 1) / strip_rows)
    return StripStatistics.of(indptr, matrix, strip_rows * coarsening(strips))


def best_blocks(statistics: StripStatistics, costs: Costs) -> list[PlannedBlock]:
    """Return the row blocks with the least forecast time of all products and the conversions.

    The strips of `statistics` are the cuts that may be made. SPMV_OPTIMAL_SOLUTION of Fig. 11 finds, for the
    best plan of the first j strips, S[1, j], the strips before its last block, and F, the format of that
    block. All blocks that end at some strips are forecast at once.
    """
    formats, strips = costs.open_formats(statistics.matrix), statistics.strips
    cost = np.zeros(strips + 1)  # T[1, j] of Fig. 8, with T[1, 0] = 0
    split = np.zeros(strips + 1, dtype=np.int64)
    format_index = np.zeros(strips + 1, dtype=np.int64)
    # The strips that blocks end at, in runs of about _BLOCKS_AT_ONCE blocks each.
    every_end = np.arange(1, strips + 1)
    run = np.cumsum(every_end) // _BLOCKS_AT_ONCE
    for ends in np.split(every_end, np.flatnonzero(np.diff(run)) + 1):
        of_formats = costs.of_ends(statistics, ends, formats)
        fastest = of_formats.argmin(axis=0)
        least = of_formats.min(axis=0)
        first = 0
        for j in map(int, ends):  # lines 03 to 13
            best = fastest[first : first + j]  # F[k + 1, j]
            total = cost[:j] + least[first : first + j]  # line 07: q = T[1, k] + E[k + 1, j]
            # Of equals the fewest blocks: argmin takes the smallest k, and k = 0 is the block of all strips.
            k = int(total.argmin())
            cost[j], split[j], format_index[j] = total[k], k, best[k]
            first += j
    blocks: list[PlannedBlock] = []
    end = strips
    while end > 0:  # PRINT_OPTIMAL_STRATEGY of Fig. 11, from the last block to the first
        start = int(split[end])
        block = statistics.blocks(np.array([start]), np.array([end]))
        blocks.append(costs.planned(block, int(statistics.bounds[start]), formats[int(format_index[end])]))
        end = start
    return blocks[::-1]


def best_single_block(statistics: StripStatistics, costs: Costs) -> PlannedBlock:
    """Return all rows in one block, in the format that `best_blocks` would choose for it."""
    block = statistics.blocks(np.array([0]), np.array([statistics.strips]))
    formats = costs.open_formats(statistics.matrix)
    return costs.planned(block, 0, min(formats, key=lambda name: float(costs.of_blocks(block, name)[0])))


def _blocks_that_end(statistics: StripStatistics, ends: NDArray[np.int64]) -> RowBlocks:
    """Return the blocks that end at some strips, end by end, each from the longest block to the shortest."""
    starts = np.arange(ends.sum()) - np.repeat(np.cumsum(ends) - ends, ends)
    return statistics.blocks(starts, np.repeat(ends, ends))
