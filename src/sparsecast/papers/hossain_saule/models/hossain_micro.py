"""The model from micro-benchmarks of Hossain and Saule for one process.

Source: M. M. Hossain, E. Saule, "Performance Model of Iterated SpMV for Distributed System", section III.C:
T = L_FMA nnz + memory, and nothing for communication. Table I counts the accesses (`table_one`).

Irregular accesses that hit a cache count as sequential; one that misses moves a line in place of a value.
Bytes move at the bandwidth of their size: the mean of the next smaller and the next larger measured array.

What the paper leaves open, and what is done here:

- L_FMA is not measured by itself here: it is what the reference product in the second cache takes for a
  word beyond the reading of that word.
- Bandwidths are those of a read by as many threads: a profile of a processor has no other.
- Misses follow from the reuse of x in the Structure instead of a run through the matrix: a cache line is
  missed where more other lines were read since than the cache holds, L3 over cores for each thread. Entries
  are in the order of the rows, so COO comes back to a line of y at once.
- As printed, caches are cold: the first read of each line of x and y misses. Ours are warm, as they are in
  our measurements: first reads miss where x and y exceed the cache.
- COO sets y to zero first, which Table I leaves out; `as_printed` does so too.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from sparsecast.features.row_blocks import RowBlocks
from sparsecast.machines.machine import PROCESSOR
from sparsecast.models import MODELS
from sparsecast.models.fitting import Floats, between_points
from sparsecast.models.model import AsPrinted, Model
from sparsecast.models.training import TrainingSet
from sparsecast.papers.hossain_saule.table_one import FORMATS_OF_THE_PAPER, accessed_bytes, memory_terms
from sparsecast.records import Candidate
from sparsecast.system.memory import CACHE_LINE_BYTES

#: Bytes of a word of a reference product.
WORD_BYTES = 8


@MODELS.register("hossain-micro")
class HossainMicro(AsPrinted, Model):
    """Operations, bytes and misses at the speeds of this machine; fitted to no product of a matrix.

    With `as_printed`, caches are cold, and COO finds its y at zero.
    """

    name: ClassVar[str] = "hossain-micro"
    version: ClassVar[int] = 3
    devices: ClassVar[tuple[str, ...] | None] = (PROCESSOR,)
    covers: ClassVar[tuple[str, ...] | None] = FORMATS_OF_THE_PAPER
    groups: ClassVar[tuple[str, ...]] = ("row_lengths", "locality")
    fma_s_: float | None  # L_FMA, seconds per non-zero; None where no reference product was timed
    #: Bytes of an array and the bytes a second at which it is read, the smallest first.
    bandwidths_: list[tuple[int, float]]

    def _fit(self, training: TrainingSet) -> None:
        threads = training.records[0].candidate.threads if training.records else 1
        read = [
            bandwidth
            for bandwidth in training.bandwidths
            if bandwidth.kind == "read" and bandwidth.threads == threads
        ]
        self.bandwidths_ = sorted((bandwidth.bytes, bandwidth.bandwidth_bytes_per_s) for bandwidth in read)
        seconds = [record.references_s["L2"] for record in training.records if "L2" in record.references_s]
        self.fma_s_ = None
        if seconds and self.bandwidths_:
            self.fma_s_ = self._fma_s(float(np.median(seconds)), threads)

    def _fma_s(self, reference_s: float, threads: int) -> float:
        """Return the seconds of an operation: those of the reference that reading its words leaves."""
        from sparsecast.measuring.references import reference_bytes, words_a_call

        size = reference_bytes(*self.machine_.shared_cache_bytes(threads))["L2"]
        word_s = reference_s / words_a_call(size, threads)
        return max(0.0, word_s - WORD_BYTES / float(self._bandwidth(np.array([float(size)]))[0]))

    def needed(self) -> str:
        lacking = "bandwidths of its threads" if not self.bandwidths_ else "times of reference products"
        return f"{lacking}; add them by `sparsecast calibrate`"

    def formats(self) -> list[str]:
        return [] if self.fma_s_ is None else list(FORMATS_OF_THE_PAPER)

    def terms(self, candidate: Candidate, blocks: RowBlocks) -> dict[str, Floats]:
        """Return the seconds of operations, of sequential bytes and of misses, and their sum."""
        rows, nnz = blocks.rows.astype(float), blocks.nnz.astype(float)
        accessed = accessed_bytes(candidate, rows, nnz, zeroes_y=not self.as_printed)
        speed, misses = self._bandwidth(accessed), self._misses(candidate, blocks)
        assert self.fma_s_ is not None
        terms = {"FMA": self.fma_s_ * nnz, **memory_terms(candidate, accessed, misses, speed)}
        # A matrix without rows accesses nothing.
        return {**terms, "time_s": np.maximum(sum(terms.values()), np.finfo(float).tiny)}

    def _bandwidth(self, size_bytes: Floats) -> Floats:
        sizes, speeds = (np.array(column) for column in zip(*self.bandwidths_, strict=True))
        return between_points(sizes, speeds, size_bytes)

    def _misses(self, candidate: Candidate, blocks: RowBlocks) -> Floats:
        matrix, locality = blocks.matrix, blocks.matrix.locality
        lines = self._cache_lines(candidate.threads)
        share = blocks.nnz / max(matrix.nnz, 1)
        reuse = np.asarray(locality.reuse_histogram)
        # Element k has 2**k to 2**(k + 1) other reads in between; within it they are spread evenly over the
        # octave. They are the lines read at most.
        beyond = np.clip(np.arange(len(reuse) - 1) + 1 - np.log2(lines), 0.0, 1.0)
        again = locality.line_changes * float(reuse[:-1] @ beyond)
        first = locality.line_changes * float(reuse[-1])
        lines_of_y = np.minimum(
            np.ceil(blocks.rows * candidate.value_bytes / CACHE_LINE_BYTES), blocks.nnz
        ) * (candidate.format == "coo")
        fits = first + matrix.rows * candidate.value_bytes / CACHE_LINE_BYTES <= lines
        is_cold = self.as_printed or not fits
        return np.asarray(share * (again + first * is_cold) + lines_of_y * is_cold)

    def _cache_lines(self, threads: int) -> float:
        """Return the lines of the last cache that the threads have: its bytes over its cores for each."""
        cache = self.machine_.product_caches[-1] if self.machine_.product_caches else None
        return max(1.0, cache.bytes * threads / cache.shared_by / CACHE_LINE_BYTES) if cache else 1.0
