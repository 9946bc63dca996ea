"""A linear model of what a product does: bytes streamed by cache level, rows, mispredicted rows, misses of x.

For each format, the time is a sum of non-negative costs times counts that follow from the structure. The
costs are fitted to relative residuals on benchmark matrices by non-negative least squares, so that no
term can pay for another and every term can be read: seconds a row, seconds a byte from memory.

Where the strip models of Guo et al. (2014) see one row length, this sees

- the cache level that a repeated product finds the matrix in. Of W bytes read over and over, a cache of C
  bytes can keep C, so the share beyond it is max(0, 1 - C / W);
- rows whose length is not foreseen, because the end of the row loop is then mispredicted;
- reads of x that miss a cache: a line read again after d bytes of other traffic is found in a cache of more
  than d bytes. The distances come from the reuse histogram of the Structure;
- the thread with the longest row, which the others wait for.

On a GPU, thousands of rows are on their way at once: mispredicted rows cost nothing, and padding is read
without a miss of x. What counts there is the launch, the rows and entries, the bytes and the lines of x
beyond its second-level cache, the padding, and the longest row, whose entries one warp or thread goes through
while the others are done. Each kernel of a format has costs of its own there: each was measured on every
matrix.

A row block of a plan is charged as part of its matrix: in a sweep over all blocks each one finds the caches
as the others leave them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sparsecast.formats import FORMATS
from sparsecast.formats.bcsr import BCSR
from sparsecast.formats.hyb import HYB, LEAST_ROWS_ON_GPUS
from sparsecast.machines.machine import Cache, Machine
from sparsecast.matrices.row_blocks import RowBlocks
from sparsecast.models import MODELS
from sparsecast.models.model import Model
from sparsecast.records import Candidate, Record

#: Suites it is fitted to.
SUITES = ("strips", "entry strips", "varied", "blocks", "symmetric", "diagonals", "published", "row lengths")

#: Fewest Records a format is fitted to: as many as it has costs.
LEAST_RECORDS = 12

CACHE_LINE_BYTES = 64

Floats = NDArray[np.float64]


@MODELS.register("linear")
class LinearModel(Model):
    """One non-negative cost for each kind of work, fitted for each format, and on a GPU for each kernel.

    Attributes
    ----------
    costs_ : dict of str to dict of str to float
        For each format, or format and kernel, as `label` calls them, seconds for one unit of each kind of
        work.
    """

    name: ClassVar[str] = "linear"

    def _fit(self, records: Sequence[Record], machine: Machine | None) -> None:
        self.costs_: dict[str, dict[str, float]] = {}
        self._kernels: dict[str, tuple[str, ...]] = {}
        used = [record for record in records if record.suite in SUITES]
        if not used:
            return
        self._candidate: Candidate = used[0].candidate
        self._caches = machine.product_caches if machine else ()
        alike: dict[tuple[str, str], list[Record]] = {}
        for record in used:
            kernel = record.candidate.kernel if self.gpu_ else ""
            alike.setdefault((record.candidate.format, kernel), []).append(record)
        for (name, kernel), own in sorted(alike.items(), key=lambda item: item[0]):
            if len(own) >= LEAST_RECORDS:
                self._kernels[name] = (*self._kernels.get(name, ()), kernel) if kernel else ()
                self.costs_[self.label(name, kernel)] = self._fitted_costs(own)

    def _fitted_costs(self, records: Sequence[Record]) -> dict[str, float]:
        """Return the cost of each kind of work that explains Records of one format best."""
        from scipy.optimize import nnls

        candidate = records[0].candidate
        works = [
            self._work(candidate.format, RowBlocks.of(record.structure), candidate.kernel)
            for record in records
        ]
        time_s = np.array([record.time_s for record in records])
        counts = np.array([[float(count[0]) for count in work.values()] for work in works])
        # Columns are scaled to one magnitude: nnls stops at an absolute tolerance.
        relative = counts / time_s[:, None]
        scale = np.maximum(relative.max(axis=0), np.finfo(float).tiny)
        costs = nnls(relative / scale, np.ones(len(records)))[0] / scale
        return dict(zip(works[0], costs.tolist(), strict=True))

    def formats(self) -> list[str]:
        """Return the formats with at least LEAST_RECORDS benchmark Records, on a GPU of one kernel."""
        return list(self._kernels)

    def kernels(self, format_name: str) -> tuple[str, ...]:
        """Return a format's kernels with at least LEAST_RECORDS benchmark Records; none on a processor."""
        return self._kernels.get(format_name, ())

    def terms(self, format_name: str, blocks: RowBlocks, kernel: str | None = None) -> dict[str, Floats]:
        """Return the seconds that each kind of work costs each block, and their sum."""
        costs = self.costs_[self.label(format_name, kernel)]
        work = self._work(format_name, blocks, kernel)
        terms = {name: costs[name] * count for name, count in work.items()}
        # No term is below zero; the sum is zero only where every count is, which no product is.
        floor = np.finfo(float).tiny
        return {**terms, "time_s": np.maximum(np.sum(list(terms.values()), axis=0), floor)}

    def _work(self, format_name: str, blocks: RowBlocks, kernel: str | None = None) -> dict[str, Floats]:
        """Count the work of each kind that one product with each block is."""
        value_bytes = np.dtype(self._candidate.dtype).itemsize
        index_bytes = self._candidate.index_bits // 8
        storage = FORMATS.get(format_name)
        stored = storage.stored_entries(blocks).astype(float)
        matrix_bytes = storage.predicted_bytes(blocks, value_bytes, index_bytes)
        streamed = (matrix_bytes + blocks.rows * value_bytes).astype(float)
        working_set = streamed + self._rest_bytes(blocks, value_bytes, index_bytes)
        if self.gpu_:
            return {
                "start": np.ones(len(blocks.rows)),
                "rows": blocks.rows.astype(float),
                "entries": blocks.nnz.astype(float),
                "padding": stored - blocks.nnz,
                **self._longest_row(format_name, blocks, kernel),
                **self._streams(streamed, working_set),
                **self._gathers(blocks, working_set, np.ones(len(blocks.rows))),
            }
        wait = self._wait(format_name, blocks)
        return {
            "start": np.ones(len(blocks.rows)),
            "rows": blocks.rows.astype(float),
            "entries": stored * wait,
            **self._row_ends(format_name, blocks),
            **self._streams(streamed * wait, working_set),
            **self._gathers(blocks, working_set, wait),
        }

    @staticmethod
    def _rest_bytes(blocks: RowBlocks, value_bytes: int, index_bytes: int) -> Floats:
        """Return the bytes beside a block that one sweep over its matrix touches: x, y, other rows as CSR."""
        matrix = blocks.matrix
        other_rows = (matrix.rows - blocks.rows) * (index_bytes + value_bytes)
        other_entries = (matrix.nnz - blocks.nnz) * (index_bytes + value_bytes)
        # At least one byte: an empty matrix has no working set to be divided by.
        return np.asarray(np.maximum(other_rows + other_entries + matrix.cols * value_bytes, 1.0))

    def _wait(self, format_name: str, blocks: RowBlocks) -> Floats:
        """Return how much longer the slowest thread works than an even share: a row is not divided."""
        if format_name == "coo":
            return np.ones(len(blocks.rows))
        even_share = np.maximum(blocks.nnz, 1) / self._candidate.threads
        return np.asarray(np.maximum(1.0, blocks.row_length_max / even_share))

    @staticmethod
    def _longest_row(format_name: str, blocks: RowBlocks, kernel: str | None) -> dict[str, Floats]:
        """Return the entries that one warp or thread of a GPU goes through, where a row is not divided."""
        if format_name == "coo" or kernel == "balanced":
            return {}
        if format_name == "hyb":
            width, overflow = HYB.split(blocks, LEAST_ROWS_ON_GPUS)
            return {"longest row": width.astype(float), "overflow entries": overflow.astype(float)}
        return {"longest row": blocks.row_length_max.astype(float)}

    @staticmethod
    def _row_ends(format_name: str, blocks: RowBlocks) -> dict[str, Floats]:
        mispredicted = blocks.mispredicted_rows.astype(float)
        if format_name == "csr":
            branching = np.where(blocks.is_mispredicted, 0.0, mispredicted)
            return {
                "mispredicted": branching,
                "masked rows": np.where(blocks.is_mispredicted, blocks.rows, 0.0),
            }
        if format_name == "hyb":
            width, overflow = HYB.split(blocks)
            beyond = np.minimum(overflow, _rows_longer_than(blocks, width))
            return {"overflow entries": overflow.astype(float), "overflow rows": beyond.astype(float)}
        if format_name == "bcsr":  # sizes differ in the blocks that hold as many entries
            return {"blocks": BCSR.stored_blocks(blocks).astype(float)}
        return {"mispredicted": mispredicted} if format_name == "coo" else {}

    def _streams(self, streamed: Floats, working_set: Floats) -> dict[str, Floats]:
        """Return the bytes beyond each cache but the first, which no matrix worth planning fits in."""
        return {
            f"bytes beyond L{cache.level}": streamed
            * np.maximum(0.0, 1.0 - self._capacity(cache) / working_set)
            for cache in self._caches
            if cache.level > 1
        }

    def _gathers(self, blocks: RowBlocks, working_set: Floats, wait: Floats) -> dict[str, Floats]:
        """Return the changes of x's cache line, and those whose line is beyond each cache."""
        matrix = blocks.matrix
        changes = wait * blocks.nnz * (matrix.x_line_changes / max(matrix.nnz, 1))
        gathers = {"lines of x": changes}
        if not matrix.x_reuse_histogram:
            return gathers | {f"lines of x beyond L{cache.level}": 0.0 * changes for cache in self._caches}
        between = 2.0 ** (np.arange(len(matrix.x_reuse_histogram)) + 0.5)
        x_bytes = np.minimum(
            between * CACHE_LINE_BYTES, matrix.cols * np.dtype(self._candidate.dtype).itemsize
        )
        matrix_bytes = between[None, :] * (working_set / max(matrix.x_line_changes, 1))[:, None]
        distance = np.minimum(x_bytes + matrix_bytes, working_set[:, None])
        distance[:, -1] = working_set  # first reads: the last time was in the product before
        for cache in self._caches:
            beyond = (distance > self._capacity(cache)) @ np.asarray(matrix.x_reuse_histogram)
            gathers[f"lines of x beyond L{cache.level}"] = changes * beyond
        return gathers

    def _capacity(self, cache: Cache) -> float:
        """Return the bytes of a cache level that the threads have together."""
        return cache.bytes * max(1.0, self._candidate.threads / cache.shared_by)


def _rows_longer_than(blocks: RowBlocks, width: NDArray[np.int64]) -> NDArray[np.int64]:
    level = np.minimum(np.searchsorted(blocks.levels, width) + 1, blocks.rows_at_least.shape[1] - 1)
    return np.take_along_axis(blocks.rows_at_least, level[:, None], axis=1)[:, 0]
