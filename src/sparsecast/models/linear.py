"""A linear model of the work of a product: bytes by cache level, rows, mispredicted rows, misses of x.

For each format, the time is a sum of non-negative costs times counts that follow from the structure. The
costs are fitted to relative residuals on benchmark matrices by non-negative least squares, so that no
term can pay for another and every term can be read: seconds a row, seconds a byte from memory.

Where the strip models of Guo et al. (2014) see one row length, this sees

- the cache level that a repeated product finds the matrix in. Of W bytes read over and over, a cache of C
  bytes can keep C, so the share beyond it is max(0, 1 - C / W). What a byte beyond a cache costs is shared
  by the formats that were measured there with those that were not;
- rows whose length is not foreseen, because the end of the row loop is then mispredicted;
- reads of x that miss a cache: a line read again after d bytes of other traffic is found in a cache of more
  than d bytes. The distances come from the reuse histogram of the Structure;
- the thread with the longest row, which the others wait for.

On a GPU, thousands of rows are on their way at once: mispredicted rows cost nothing, and padding is read
without a miss of x. What counts is the launch, the rows and entries, the bytes and the lines of x beyond
the L2 cache, the padding, and the longest row: one warp or thread works on it while the others are done.
Each kernel of a format has its own costs: each was measured on every matrix.

A row block of a plan is charged as part of its matrix: in a sweep over all blocks each one finds the caches
as the others leave them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.sweep import X_LINE_COLUMNS
from sparsecast.formats import FORMATS
from sparsecast.formats.bcsr import BCSR
from sparsecast.formats.hyb import HYB
from sparsecast.machines.machine import Cache
from sparsecast.models import MODELS
from sparsecast.models.fitting import Floats, fitted_costs
from sparsecast.models.model import SCORED_SUITES, Model
from sparsecast.models.training import TrainingSet
from sparsecast.records import Candidate

#: Fewest Records a format is fitted to: as many as it has costs.
LEAST_RECORDS = 12

#: Fewest Records with some work beyond a cache that tell what it costs a format.
_LEAST_BEYOND = 3

#: A format whose shortest product takes so many times the shortest of all was measured on large matrices.
_LARGE = 10

CACHE_LINE_BYTES = 64


@dataclass(frozen=True)
class CountedWork:
    """The work that Records of one fit measured.

    Attributes
    ----------
    format, kernel : str
        The kernel is empty where one fit is for all of a format.
    places : int array of shape (records,)
        Of the Records in their training set.
    kinds : tuple of str
    counts : float array of shape (records, kinds)
    time_s : float array of shape (records,)
    """

    format: str
    kernel: str
    places: NDArray[np.int64]
    kinds: tuple[str, ...]
    counts: Floats
    time_s: Floats

    @property
    def label(self) -> str:
        """Name of the fit, as `Model.label` gives it."""
        return f"{self.format} {self.kernel}".rstrip()

    def knows(self, kind: str) -> bool:
        """Tell whether enough Records have work of a kind."""
        return bool(np.count_nonzero(self.counts[:, self.kinds.index(kind)]) >= _LEAST_BEYOND)

    def part(self, chosen: NDArray[np.bool_]) -> CountedWork:
        """Return the work of some Records; `chosen` has one element for each of the training set."""
        own = chosen[self.places]
        return replace(self, places=self.places[own], counts=self.counts[own], time_s=self.time_s[own])


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
    version: ClassVar[int] = 6

    @classmethod
    def learns_from(cls, suite: str) -> bool:
        """Tell whether it is fitted to the Records of a suite: also of one that only a plug-in measures."""
        return suite not in SCORED_SUITES

    def _fit(self, training: TrainingSet) -> None:
        self.fit_work(self.counted(training))

    def counted(self, training: TrainingSet) -> list[CountedWork]:
        """Count the work that Records measured, one CountedWork for each fit: `machine_` must be known."""
        alike: dict[tuple[str, str], list[int]] = {}
        for place, record in enumerate(training.records):
            is_apart = self.machine_.gpu or self.machine_.published_as is not None
            kernel = record.candidate.kernel if is_apart else ""
            alike.setdefault((record.candidate.format, kernel), []).append(place)
        blocks = {r.matrix: RowBlocks.of(training.structure(r)) for r in training.records}
        found = []
        for (name, kernel), places in sorted(alike.items()):
            own = [training.records[place] for place in places]
            works = [self.work_of(record.candidate, blocks[record.matrix]) for record in own]
            counts = np.array([[float(count[0]) for count in work.values()] for work in works])
            time_s = np.array([record.time_s for record in own])
            found.append(CountedWork(name, kernel, np.array(places), tuple(works[0]), counts, time_s))
        return found

    def fit_work(self, counted: Sequence[CountedWork]) -> Self:
        """Learn the costs that explain work best, of each fit with enough of it."""
        self.costs_: dict[str, dict[str, float]] = {}
        self.kernels_: dict[str, tuple[str, ...]] = {}
        for work in counted:
            if len(work.places) >= LEAST_RECORDS:
                own = self.kernels_.get(work.format, ())
                self.kernels_[work.format] = (*own, work.kernel) if work.kernel else ()
                costs = fitted_costs(work.counts, work.time_s)
                self.costs_[work.label] = dict(zip(work.kinds, costs.tolist(), strict=True))
        served = [work for work in counted if work.label in self.costs_]
        self._limit_start(served)
        self._share_costs_beyond(served)
        return self

    def _limit_start(self, counted: Sequence[CountedWork]) -> None:
        """Have products of a format that was measured on large matrices alone start as fast as any.

        The start would otherwise take over what is alike in all of these, and small matrices would be
        forecast to take as long.
        """
        least_s = min((float(work.time_s.min()) for work in counted), default=0.0)
        for work in counted:
            costs = self.costs_[work.label]
            if work.time_s.min() > _LARGE * least_s and costs["start"] > least_s:
                others = np.array([kind != "start" for kind in work.kinds])
                rest = fitted_costs(work.counts[:, others], work.time_s - least_s)
                kinds = [kind for kind in work.kinds if kind != "start"]
                self.costs_[work.label] = {"start": least_s, **dict(zip(kinds, rest.tolist(), strict=True))}

    def _share_costs_beyond(self, counted: Sequence[CountedWork]) -> None:
        """Give fits whose Records never went beyond a cache the median cost of those that did.

        A byte from memory takes as long in every format. Without this, a matrix larger than all that a format
        was measured on would be forecast at the speed of the cache.
        """
        for kind in sorted({kind for work in counted for kind in work.kinds if " beyond " in kind}):
            known = {work.label: work.knows(kind) for work in counted if kind in work.kinds}
            costs = [self.costs_[label][kind] for label, is_known in known.items() if is_known]
            for label, is_known in known.items():
                if costs and not is_known:
                    self.costs_[label][kind] = float(np.median(costs))

    def _state(self) -> dict[str, Any]:
        return {"costs": self.costs_, "kernels": {name: list(own) for name, own in self.kernels_.items()}}

    def _restore(self, learned: Mapping[str, Any]) -> None:
        self.costs_ = dict(learned["costs"])
        self.kernels_ = {name: tuple(own) for name, own in learned["kernels"].items()}

    def formats(self) -> list[str]:
        """Return the formats with at least LEAST_RECORDS benchmark Records, on a GPU of one kernel."""
        return list(self.kernels_)

    def kernels(self, format_name: str) -> tuple[str, ...]:
        """Return a format's kernels with at least LEAST_RECORDS benchmark Records; none on a processor."""
        return self.kernels_.get(format_name, ())

    def terms(self, candidate: Candidate, blocks: RowBlocks) -> dict[str, Floats]:
        """Return the seconds that each kind of work costs each block, and their sum."""
        costs = self.costs_[self.label(candidate)]
        work = self.work_of(candidate, blocks)
        terms = {name: costs[name] * count for name, count in work.items()}
        # No term is below zero; the sum is zero only where every count is, which no product is.
        floor = np.finfo(float).tiny
        return {**terms, "time_s": np.maximum(np.sum(list(terms.values()), axis=0), floor)}

    def work_of(self, candidate: Candidate, blocks: RowBlocks) -> dict[str, Floats]:
        """Count the work of each kind that one product with each block is."""
        widths = candidate.value_bytes, candidate.index_bytes
        storage: Any = FORMATS.get(candidate.format)
        stored = storage.stored_entries(blocks, **candidate.parameters).astype(float)
        matrix_bytes = storage.predicted_bytes(blocks, *widths, **candidate.parameters)
        streamed = (matrix_bytes + blocks.rows * candidate.value_bytes).astype(float)
        working_set = streamed + self._rest_bytes(blocks, *widths)
        once = np.ones(len(blocks.rows))
        if self.machine_.gpu:
            wait = once
            entries = {"entries": blocks.nnz.astype(float), "padding": stored - blocks.nnz}
            ends = self._longest_row(candidate, blocks)
        else:
            wait = self._wait(candidate, blocks)
            entries = {"entries": stored * wait}
            ends = self._row_ends(candidate, blocks)
            if candidate.format == "sell" and self.machine_.published_as is not None:
                # One thread has the slice of the longest row; how many there were is not published.
                ends = {**ends, "longest row": blocks.row_length_max.astype(float)}
        return {
            "start": once,
            "rows": blocks.rows.astype(float),
            **entries,
            **ends,
            **self._streams(candidate, streamed * wait, working_set),
            **self._gathers(candidate, blocks, working_set, wait),
        }

    @staticmethod
    def _rest_bytes(blocks: RowBlocks, value_bytes: int, index_bytes: int) -> Floats:
        """Return the bytes that a sweep over the matrix touches outside a block: x, y, other rows as CSR."""
        matrix = blocks.matrix
        other_rows = (matrix.rows - blocks.rows) * (index_bytes + value_bytes)
        other_entries = (matrix.nnz - blocks.nnz) * (index_bytes + value_bytes)
        # At least one byte: an empty matrix has no working set to be divided by.
        return np.asarray(np.maximum(other_rows + other_entries + matrix.cols * value_bytes, 1.0))

    @staticmethod
    def _wait(candidate: Candidate, blocks: RowBlocks) -> Floats:
        """Return how much longer the slowest thread works than an even share: a row is not divided."""
        if candidate.format == "coo":
            return np.ones(len(blocks.rows))
        even_share = np.maximum(blocks.nnz, 1) / candidate.threads
        return np.asarray(np.maximum(1.0, blocks.row_length_max / even_share))

    @staticmethod
    def _longest_row(candidate: Candidate, blocks: RowBlocks) -> dict[str, Floats]:
        """Return the entries that one warp or thread of a GPU goes through, where a row is not divided."""
        if candidate.format == "coo" or candidate.kernel == "balanced":
            return {}
        if candidate.format == "hyb":
            width, overflow = HYB.split_of(candidate, blocks)
            return {"longest row": width.astype(float), "overflow entries": overflow.astype(float)}
        return {"longest row": blocks.row_length_max.astype(float)}

    @staticmethod
    def _row_ends(candidate: Candidate, blocks: RowBlocks) -> dict[str, Floats]:
        """Return what the ends of rows cost a processor, or what a format has in their place."""
        mispredicted = blocks.mispredicted_rows.astype(float)
        match candidate.format:
            case "csr":
                is_masked = blocks.is_mispredicted
                return {
                    "mispredicted": np.where(is_masked, 0.0, mispredicted),
                    "masked rows": np.where(is_masked, blocks.rows, 0.0),
                }
            case "hyb":
                width, overflow = HYB.split_of(candidate, blocks)
                beyond = np.minimum(overflow, _rows_longer_than(blocks, width))
                return {"overflow entries": overflow.astype(float), "overflow rows": beyond.astype(float)}
            case "bcsr":  # sizes differ in the blocks that hold as many entries
                return {"blocks": BCSR.stored_blocks(blocks).astype(float)}
            case "dia":  # where one enters or leaves the matrix, the rows of a chunk are done one by one
                count = 0 if blocks.matrix.lacks(["bands"]) else blocks.matrix.bands.diagonals
                return {"diagonals": np.full(len(blocks.rows), float(count))}
            case "ell" | "sell" | "jad" | "symmetric_csr":
                return {}  # with such a cost, forecasts rank these formats worse
        return {"mispredicted": mispredicted}  # of COO, and of every format that is not known here

    def _streams(self, candidate: Candidate, streamed: Floats, working_set: Floats) -> dict[str, Floats]:
        """Return the bytes beyond each cache but the first, which no matrix worth planning fits in."""
        return {
            f"bytes beyond L{cache.level}": streamed
            * np.maximum(0.0, 1.0 - capacity(cache, candidate.threads) / working_set)
            for cache in self.machine_.product_caches
            if cache.level > 1
        }

    def _gathers(
        self, candidate: Candidate, blocks: RowBlocks, working_set: Floats, wait: Floats
    ) -> dict[str, Floats]:
        """Return the changes of x's cache line, and those whose line is beyond each cache.

        Where the locality is not known, every entry counts as a change, and no line as beyond a cache; but
        see `_gathers_of_neighbours`.
        """
        matrix, caches = blocks.matrix, self.machine_.product_caches
        if matrix.lacks(["locality"]):
            if not matrix.lacks(["neighbourhood"]):
                return self._gathers_of_neighbours(candidate, blocks, working_set, wait)
            changes = wait * blocks.nnz
            return {"lines of x": changes, **{f"lines of x beyond L{c.level}": 0.0 * changes for c in caches}}
        locality = matrix.locality
        changes = wait * blocks.nnz * (locality.line_changes / max(matrix.nnz, 1))
        gathers = {"lines of x": changes}
        between = 2.0 ** (np.arange(len(locality.reuse_histogram)) + 0.5)
        x_bytes = np.minimum(between * CACHE_LINE_BYTES, matrix.cols * candidate.value_bytes)
        matrix_bytes = between[None, :] * (working_set / max(locality.line_changes, 1))[:, None]
        distance = np.minimum(x_bytes + matrix_bytes, working_set[:, None])
        distance[:, -1] = working_set  # first reads: the last time was in the product before
        for cache in caches:
            beyond = (distance > capacity(cache, candidate.threads)) @ np.asarray(locality.reuse_histogram)
            gathers[f"lines of x beyond L{cache.level}"] = changes * beyond
        return gathers

    def _gathers_of_neighbours(
        self, candidate: Candidate, blocks: RowBlocks, working_set: Floats, wait: Floats
    ) -> dict[str, Floats]:
        """Return the same from the distances between entries, where the order of the reads is not known.

        An entry beside another one begins a line of x in one of X_LINE_COLUMNS cases. The lines that the
        next row does not read again are read again when the rows have gone through the columns that a row
        spans: so many entries of the matrix, and of x, come in between.
        """
        near, caches = blocks.matrix.neighbourhood, self.machine_.product_caches
        changes = wait * blocks.nnz * (1 - near.neighbours / 2 * (1 - 1 / X_LINE_COLUMNS))
        bytes_between = near.row_bandwidth * (2 * candidate.value_bytes + candidate.index_bytes)
        distance = np.minimum(np.maximum(bytes_between, 1.0), working_set)
        gathers = {"lines of x": changes}
        for cache in caches:
            beyond = np.maximum(0.0, 1.0 - capacity(cache, candidate.threads) / distance)
            gathers[f"lines of x beyond L{cache.level}"] = changes * (1 - near.cross_row_similarity) * beyond
        return gathers


def capacity(cache: Cache, threads: int) -> float:
    """Return the bytes of a cache level that so many threads have together."""
    return cache.bytes * max(1.0, threads / cache.shared_by)


def _rows_longer_than(blocks: RowBlocks, width: NDArray[np.int64]) -> NDArray[np.int64]:
    level = np.minimum(np.searchsorted(blocks.levels, width) + 1, blocks.rows_at_least.shape[1] - 1)
    return np.take_along_axis(blocks.rows_at_least, level[:, None], axis=1)[:, 0]
