"""The work of products, counted from what is known of a matrix: bytes by cache level, rows, entries, misses.

Where the strip models of Guo et al. (2014) see one row length, this sees

- the cache level that a repeated product finds the matrix in. Of W bytes read over and over, a cache of C
  bytes can keep C, so the share beyond it is max(0, 1 - C / W);
- the ends of rows, as each format has them (`StorageFormat.row_end_work`), and of the mispredicted ones those
  that the processor has not learned by heart from the products before;
- reads of x that miss a cache: a line read again after d bytes of other traffic is found in a cache of more
  than d bytes. The distances come from the reuse histogram of the Structure;
- the thread with the longest row, which the others wait for.

On a GPU, thousands of rows are on their way at once: mispredicted rows cost nothing, and padding is read
without a miss of x. What counts is the launch, the rows and entries, the bytes and the lines of x beyond
the L2 cache, the padding, and the longest row: one warp or thread works on it while the others are done.

An entry in narrow storage is work of a kind of its own: it has fewer bytes, and values or columns to convert.
Where too few Records know such a kind, an entry of it costs as much as one in full, and its bytes alone less.

Of several vectors, a format with a kernel for them reads the matrix once for each panel, and a row of X where
another product reads a number. The others do one product after another.

A row block of a plan is charged as part of its matrix: in a sweep over all blocks each one finds the caches
as the others leave them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import inf, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsecast.devices.target import passes
from sparsecast.features.row_blocks import RowBlocks
from sparsecast.features.sweep import X_LINE_COLUMNS
from sparsecast.formats import FORMATS
from sparsecast.machines.machine import Cache, Machine
from sparsecast.models.fitting import Floats
from sparsecast.models.training import TrainingSet
from sparsecast.records import MEMORY, Candidate, Record
from sparsecast.system.memory import CACHE_LINE_BYTES

#: Fewest Records with work beyond a cache, or in narrow storage, that tell what it costs a format.
LEAST_OF_KIND = 3

#: Work that every format has, of entries in full. In narrow storage, a parameter of it follows the name.
ENTRIES = "entries"

#: Entries of a thread up to which a repeated product has the ends of its rows predicted, however irregular
#: they are: the predictor knows them by heart. From twice as many on it has forgotten all of them. In COO on
#: Zen 4 such a row took 1 to 3 ns below 100,000 entries, and 6 to 10 ns above 200,000.
_REMEMBERED_ENTRIES = 100_000

#: Readings of memory, taken every few seconds, that are averaged.
_NEAR = 21

#: The term that what trees learned adds to those of the work.
CORRECTION = "correction"

#: Bytes of the values that one instruction of a processor adds to sums.
_REGISTER_BYTES = 32

#: Kernels of GPUs that divide rows among their lanes, whatever the format.
_DIVIDING_KERNELS = ("balanced", "adaptive")


@dataclass(frozen=True)
class CountedWork:
    """The work that Records of one fit measured."""

    format: str
    kernel: str  # empty where one fit is for all of a format
    places: NDArray[np.int64]  # of the Records in their training set: shape (records,)
    kinds: tuple[str, ...]
    counts: Floats  # shape (records, kinds)
    time_s: Floats  # shape (records,)

    @property
    def label(self) -> str:
        return f"{self.format} {self.kernel}".rstrip()

    def knows(self, kind: str) -> bool:
        """Tell whether enough Records have work of a kind."""
        return bool(np.count_nonzero(self.counts[:, self.kinds.index(kind)]) >= LEAST_OF_KIND)

    def in_full(self, least_records: float = inf) -> CountedWork:
        """Return the work with entries in narrow storage as ENTRIES, of kinds that fewer Records have."""
        few = [
            place
            for place, kind in enumerate(self.kinds)
            if kind != full_kind(kind) and np.count_nonzero(self.counts[:, place]) < least_records
        ]
        if not few:
            return self
        counts, full = self.counts.copy(), self.kinds.index(ENTRIES)
        counts[:, full] += counts[:, few].sum(axis=1)
        kinds = tuple(kind for place, kind in enumerate(self.kinds) if place not in few)
        return replace(self, kinds=kinds, counts=np.delete(counts, few, axis=1))

    def part(self, chosen: NDArray[np.bool_]) -> CountedWork:
        own = chosen[self.places]
        return replace(self, places=self.places[own], counts=self.counts[own], time_s=self.time_s[own])


@dataclass(frozen=True, slots=True)
class ProductWork:
    """Counts the work of products on a machine."""

    machine: Machine

    def counted(self, training: TrainingSet) -> list[CountedWork]:
        """Count the work that Records measured, one CountedWork for each fit."""
        alike: dict[tuple[str, str], list[int]] = {}
        for place, record in enumerate(training.records):
            is_apart = self.machine.gpu or self.machine.published_as is not None
            kernel = record.candidate.kernel if is_apart else ""
            alike.setdefault((record.candidate.format, kernel), []).append(place)
        blocks = {r.matrix: RowBlocks.of(training.structure(r)) for r in training.records}
        counted = []
        for (name, kernel), places in sorted(alike.items()):
            records = [training.records[place] for place in places]
            works = [self.of(record.candidate, blocks[record.matrix]) for record in records]
            every = chain.from_iterable(works)
            kinds = tuple(dict.fromkeys(each for kind in every for each in (full_kind(kind), kind)))
            none = np.zeros(1)
            counts = np.array([[float(work.get(kind, none)[0]) for kind in kinds] for work in works])
            time_s = np.array([record.time_s for record in records])
            counted.append(CountedWork(name, kernel, np.array(places), kinds, counts, time_s))
        return counted

    def read_beyond(self, candidate: Candidate, blocks: RowBlocks) -> Floats:
        """Return the bytes that each block streams from beyond the last cache, however threads share them."""
        streamed, working_set = streamed_bytes(candidate, blocks, self._stored(candidate, blocks)[1])
        cached = capacity(self.machine.product_caches[-1], candidate.threads) / working_set
        return np.asarray(passes(candidate) * streamed * np.maximum(0.0, 1.0 - cached))

    def of(self, candidate: Candidate, blocks: RowBlocks) -> dict[str, Floats]:
        storage: Any = FORMATS.get(candidate.format)
        asked_threads = candidate.threads
        candidate = replace(candidate, threads=storage.threads_used(blocks.matrix, asked_threads))
        # The costs are those of a thread's share of the work: where fewer do it, each has more.
        share = asked_threads / candidate.threads
        parameters = candidate.parameters
        stored, matrix_bytes = self._stored(candidate, blocks)
        reads, panel = passes(candidate), _panel(candidate)
        streamed, working_set = streamed_bytes(candidate, blocks, matrix_bytes)
        once = np.ones(len(blocks.rows))
        # By the values where these are narrow: their columns mostly are, too.
        narrow = [f" {kind}" for kind in storage.narrow_kinds(parameters)]
        if self.machine.gpu:
            wait = once
            is_skipped = parameters.get("values") == "one"  # padding, which has that value, is not read
            padding = np.zeros_like(stored) if is_skipped else stored - blocks.nnz
            entries = {ENTRIES + "".join(narrow[:1]): blocks.nnz.astype(float), "padding": padding}
            is_divided = candidate.kernel in _DIVIDING_KERNELS
            ends = {} if is_divided else storage.longest_row_work(blocks, **parameters)
        else:
            # How much longer the slowest thread works than an even share: a row is not divided.
            even_share = np.maximum(blocks.nnz, 1) / candidate.threads
            longest = once if storage.divides_rows else np.maximum(1.0, blocks.row_length_max / even_share)
            wait = share * longest
            sums = max(1.0, panel * candidate.value_bytes / _REGISTER_BYTES)
            entries = {ENTRIES + "".join(narrow[:1]): stored * wait * sums}
            ends = storage.row_end_work(blocks, **parameters)
            if "forgotten" in ends:
                # The share of the row ends that the predictor does not know from the product before.
                unknown = blocks.matrix.nnz / (candidate.threads * _REMEMBERED_ENTRIES) - 1.0
                ends = {**ends, "forgotten": ends["forgotten"] * float(np.clip(unknown, 0.0, 1.0))}
            if storage.has_slices and self.machine.published_as is not None:
                # One thread has the slice of the longest row; how many there were is not published.
                ends = {**ends, "longest row": blocks.row_length_max}
        counts = {
            "rows": share * blocks.rows,
            **entries,
            **{name: np.asarray(share * count, dtype=float) for name, count in ends.items()},
            **self._streams(candidate, streamed * wait, working_set),
            **self._gathers(candidate, blocks, working_set, wait),
        }
        calls = once if panel > 1 else reads * once
        return {"start": calls, **{name: reads * count for name, count in counts.items()}}

    def _stored(self, candidate: Candidate, blocks: RowBlocks) -> tuple[Floats, Floats]:
        """Return the entries of each block with padding, and the bytes of its matrix."""
        storage: Any = FORMATS.get(candidate.format)
        widths, parameters = (candidate.value_bytes, candidate.index_bytes), candidate.parameters
        stored = storage.stored_entries(blocks, **parameters)
        return stored.astype(float), storage.predicted_bytes(blocks, *widths, **parameters)

    def _streams(self, candidate: Candidate, streamed: Floats, working_set: Floats) -> dict[str, Floats]:
        """Return the bytes beyond each cache but the first, which no matrix worth planning fits in."""
        return {
            f"bytes beyond L{cache.level}": streamed
            * np.maximum(0.0, 1.0 - capacity(cache, candidate.threads) / working_set)
            for cache in self.machine.product_caches
            if cache.level > 1
        }

    def _gathers(
        self, candidate: Candidate, blocks: RowBlocks, working_set: Floats, wait: Floats
    ) -> dict[str, Floats]:
        """Return the changes of x's cache line, and those whose line is beyond each cache.

        Where the locality is not known, every entry counts as a change, and no line as beyond a cache; but
        see `_gathers_of_neighbours`.
        """
        matrix, caches = blocks.matrix, self.machine.product_caches
        if matrix.lacks(["locality"]):
            if not matrix.lacks(["neighbourhood"]):
                return self._gathers_of_neighbours(candidate, blocks, working_set, wait)
            changes = wait * blocks.nnz
            return {"lines of x": changes, **{f"lines of x beyond L{c.level}": 0.0 * changes for c in caches}}
        locality = matrix.locality
        panel = _panel(candidate)
        changes = wait * blocks.nnz * min(1.0, panel * locality.line_changes / max(matrix.nnz, 1))
        gathers = {"lines of x": changes}
        between = 2.0 ** (np.arange(len(locality.reuse_histogram)) + 0.5)
        # Of both triangles' changes, one triangle has half, each with a line of x and one of y.
        vectors: Any = 2 if FORMATS.get(candidate.format).adds_at_columns else 1
        vector_bytes = vectors * matrix.cols * candidate.value_bytes
        x_bytes = panel * np.minimum(between * CACHE_LINE_BYTES, vector_bytes)
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
        near, caches = blocks.matrix.neighbourhood, self.machine.product_caches
        changes = wait * blocks.nnz * (1 - near.neighbours / 2 * (1 - 1 / X_LINE_COLUMNS))
        bytes_between = near.row_bandwidth * (2 * candidate.value_bytes + candidate.index_bytes)
        distance = np.minimum(np.maximum(bytes_between, 1.0), working_set)
        gathers = {"lines of x": changes}
        for cache in caches:
            beyond = np.maximum(0.0, 1.0 - capacity(cache, candidate.threads) / distance)
            gathers[f"lines of x beyond L{cache.level}"] = changes * (1 - near.cross_row_similarity) * beyond
        return gathers


def streamed_bytes(candidate: Candidate, blocks: RowBlocks, matrix_bytes: Floats) -> tuple[Floats, Floats]:
    """Return the bytes of the matrix and of y that a pass streams for each block, and its working set.

    The working set has what a sweep over the matrix touches outside a block, too: x, y, other rows as CSR.
    """
    value_bytes, index_bytes, panel = candidate.value_bytes, candidate.index_bytes, _panel(candidate)
    matrix, streamed = blocks.matrix, (matrix_bytes + blocks.rows * value_bytes * panel).astype(float)
    other_rows = (matrix.rows - blocks.rows) * (index_bytes + value_bytes * panel)
    other_entries = (matrix.nnz - blocks.nnz) * (index_bytes + value_bytes)
    # At least one byte: an empty matrix has no working set to be divided by.
    rest = np.maximum(other_rows + other_entries + matrix.cols * value_bytes * panel, 1.0)
    return streamed, np.asarray(streamed + rest)


def beyond_last(machine: Machine, kinds: Sequence[str]) -> NDArray[np.bool_]:
    """Return which kinds of work wait for memory: those beyond the last cache."""
    beyond = tuple(f" beyond L{cache.level}" for cache in machine.product_caches[-1:])
    return np.array([kind.endswith(beyond) for kind in kinds], dtype=bool)


def at_one_speed(
    machine: Machine, counted: Sequence[CountedWork], records: Sequence[Record]
) -> list[CountedWork]:
    """Return the work of Records with that beyond the last cache as many times as memory took longer then.

    So Records of different moments of a calibration are comparable.
    """
    scales, comparable = _memory_scales(records), []
    for work in counted:
        slower = np.where(beyond_last(machine, work.kinds), scales[work.places, None], 1.0)
        comparable.append(replace(work, counts=work.counts * slower))
    return comparable


def _memory_scales(records: Sequence[Record]) -> Floats:
    """Return how many times longer memory took around each Record than in the mean of all, by its readings.

    A reading says as little of the next second as it says of a later one. So those before and after are
    averaged, and what their mean differs by counts as far as chance does not explain it. It is 1 where memory
    was not read, or by another number of threads than most.
    """
    scales, places, logs = np.ones(len(records)), list[tuple[int, int]](), list[float]()
    threads = max((record.candidate.threads for record in records), default=1)
    for place in sorted(range(len(records)), key=lambda place: records[place].measured_at):
        reading_s = records[place].references_s.get(MEMORY)
        if reading_s and records[place].candidate.threads == threads:
            if not logs or log(reading_s) != logs[-1]:
                logs.append(log(reading_s))
            places.append((place, len(logs) - 1))
    if len(logs) < _NEAR:
        return scales
    number = np.convolve(np.ones(len(logs)), np.ones(_NEAR), "same")
    means = np.convolve(logs, np.ones(_NEAR), "same") / number
    changes = means - np.mean(logs)
    chance = np.var(logs - means) * np.mean(1 / number)
    certain = max(0.0, 1.0 - chance / max(np.mean(changes**2), np.finfo(float).tiny))
    for place, reading in places:
        scales[place] = np.exp(certain * changes[reading])
    return scales


def full_kind(kind: str) -> str:
    """Return ENTRIES for entries in any narrow storage, every other kind of work as it is."""
    return ENTRIES if kind.startswith(f"{ENTRIES} ") else kind


def work_in_full(work: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return the work of a Candidate with its entries as ENTRIES, whatever their storage."""
    return {full_kind(kind): count for kind, count in work.items()}


def unit_cost(costs: Mapping[str, float], kind: str) -> float:
    """Return what a unit of a kind of work costs: in full, where that of its narrow storage is not known."""
    return costs[kind] if kind in costs else costs[full_kind(kind)]


def _panel(candidate: Candidate) -> int:
    """Return the vectors that are done at once."""
    return -(-candidate.vectors // passes(candidate))


def capacity(cache: Cache, threads: int) -> float:
    """Return the bytes of a cache level that so many threads have together."""
    return cache.bytes * max(1.0, threads / cache.shared_by)
