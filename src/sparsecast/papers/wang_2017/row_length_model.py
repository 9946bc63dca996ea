"""The models of Wang, Gu and Li (2017), and their benchmark matrices, which have rows of varied length.

Source: R. Wang, T. Gu, M. Li, "Performance Prediction Based on Statistics of Sparse Matrix-Vector
Multiplication on GPUs", Journal of Computer and Communications 5 (2017), section 3. They time a kernel on
matrices of I strips with P non-zeros a row in the mean, whose row lengths follow a distribution, and draw
straight lines through the times. There is a model for each distribution; with rows of one length it is
their baseline, the model of Guo and Wang (2012), for the same kernels.

What the paper leaves open, and what is done here:

- The spread of the lengths. Its matrices come from a generator that is told a density. Such a generator
  throws entries at random, so the lengths are binomial, of deviation sqrt(P), whatever distribution the
  values have: `wang-binomial`. Normal and uniform lengths have a deviation of a quarter and of half of the
  mean.
- In the fits, P is the mean length. Of a target it is the mode for CSR-vector, and the maximum for CSR-
  scalar, ELL and JAD (below equation 6).
- A processor has no half-warps, and no thread blocks with a limit of 1,024: its CSR is CSR-scalar, with the
  strips of `machines/strips.py`. Where too few matrices beyond 1,024 were measured on a GPU, the lines from
  below go on, as in `guo`. A GPU of many multiprocessors cannot hold 40 strips of such rows: T(P) is fitted
  at the most strips that were measured.
- The lines are fitted to relative residuals, never fall, and the time has a floor, as in `guo`;
  `as_printed` fits ordinary least squares.
"""

from __future__ import annotations

from itertools import product
from typing import ClassVar

import numpy as np

from sparsecast.features.row_blocks import RowBlocks
from sparsecast.machines.machine import Machine, strip_rows, wang_strip
from sparsecast.matrices.families import parse_specification
from sparsecast.matrices.suites import OPTIONAL, SUITES, Part, Suite, SuiteMatrix, ends_first, suite_matrix
from sparsecast.models import MODELS
from sparsecast.models.fitting import Floats, above_zero
from sparsecast.models.model import AsPrinted, Model
from sparsecast.models.strip_lines import Grid, RatioLines, SlopeLines
from sparsecast.models.training import TrainingSet
from sparsecast.records import Candidate, Record

_Grid = tuple[tuple[int, ...], tuple[int, ...]]

#: Section 3.1: strips I and mean non-zeros a row P, for CSR with a thread a row, ELL and
#: JAD, and for CSR with half a warp a row. The distributions of the row lengths are its own two, the one that
#: its generator has, and the one of the model that it compares with.
_NNZ_PER_ROW = (4, 8, 16, 32, 64, 128, 256, 512, 1024)
THREAD_GRID = (tuple(range(1, 11)), _NNZ_PER_ROW)
VECTOR_GRID = ((*range(1, 11), *range(15, 51, 5)), (*_NNZ_PER_ROW, 1536, 2048, 2560, 3072))
LENGTHS = ("normal", "uniform", "binomial", "fixed")

#: Of these grids the strips and lengths that come first: a model can be fitted to them.
_FIRST_THREAD = ((1, 5, 10), (4, 32, 256))
_FIRST_VECTOR = ((1, 2, 10, 40), (4, 64, 1024, 2048))

#: What is usual on a GPU: every other one or so of the values of each grid.
_SOME_VECTOR = ((1, 3, 5, 10, 20, 30, 40, 50), (4, 16, 64, 256, 1024, 2048, 3072))
_SOME_THREAD = ((1, 3, 5, 7, 10), (4, 16, 32, 256, 1024))


@SUITES.register("wang")
class Wang(Suite):
    """Normal, uniform, binomial and fixed row lengths, on strips of half a warp and of a thread a row."""

    name = "wang"

    def usual(self, machine: Machine, threads: int) -> list[Part]:
        """Return some of the matrices for a GPU; a processor's are measured on request.

        They have normal and uniform row lengths, for half a warp and for a thread a row.
        """
        if machine.gpu is None:
            return []
        kinds = (
            (wang_strip(machine.gpu, "csr-vector"), _SOME_VECTOR, ("csr",)),
            (wang_strip(machine.gpu, "csr-scalar"), _SOME_THREAD, ("csr", "ell", "jad")),
        )
        parts = []
        for lengths, (strip, (counts, some_lengths), formats) in product(("normal", "uniform"), kinds):
            matrices = [
                suite_matrix("row lengths", count * strip, length, lengths, formats=formats)
                for length, count in product(ends_first(some_lengths), ends_first(counts))
                if 2 * length <= count * strip
            ]
            parts.append(Part(OPTIONAL, matrices))
        return parts

    def whole(self, machine: Machine, threads: int) -> list[SuiteMatrix]:
        """Return the matrices of the paper's grids; on a processor, those of kernels with a thread a row."""
        formats = ("csr", "ell", "jad")
        if machine.gpu is None:
            return wang_matrices(strip_rows(None, threads), formats)
        return wang_matrices(
            wang_strip(machine.gpu, "csr-scalar"), formats, wang_strip(machine.gpu, "csr-vector")
        )


def wang_matrices(
    thread_strip: int, formats: tuple[str, ...], vector_strip: int | None = None
) -> list[SuiteMatrix]:
    """Return the benchmark matrices of Wang et al. (2017), section 3.1, on strips of these rows.

    Those that a model needs at least come first, the distributions in turn. They are measured in `formats`;
    with a strip of half-warps also those for CSR with half a warp a row.
    """
    kinds: list[tuple[int, _Grid, _Grid, tuple[str, ...]]]
    kinds = [(thread_strip, THREAD_GRID, _FIRST_THREAD, formats)]
    if vector_strip:
        kinds.append((vector_strip, VECTOR_GRID, _FIRST_VECTOR, ("csr",)))
    points = sorted(
        (
            not (count in first[0] and length in first[1]),
            count * strip * length,
            count * strip,
            length,
            kernels,
        )
        for strip, (counts, lengths), first, kernels in kinds
        for count, length in product(counts, lengths)
        if 2 * length <= count * strip  # varied lengths need room
    )
    return [
        suite_matrix("row lengths", rows, length, lengths, formats=kernels)
        for _, _, rows, length, kernels in points
        for lengths in LENGTHS
    ]


#: CSR with half a warp a row, and with a thread a row, among the kernels that are measured on a GPU.
GPU_VECTOR, GPU_SCALAR = "vector16", "scalar"

#: Section 3.2.1: strips at which T(P) is fitted; lengths at which E(I) is, on either side of the threads that
#: a block has at most. Section 3.2.2: the length P1 at which E(I) is fitted.
FIXED_STRIPS, FIXED_LENGTHS, THRESHOLD = 40, (64, 2048), 1024
P1 = 32


class WangModel(AsPrinted, Model):
    """The model of one distribution of row lengths: CSR-vector, CSR-scalar, ELL and JAD.

    `as_printed` takes ordinary least squares without a floor. `lengths` is the distribution, as in a
    specification of the family ``"row lengths"``; `grids_` are the measured part of the paper's grid, by
    label.
    """

    version: ClassVar[int] = 2
    covers: ClassVar[tuple[str, ...] | None] = ("csr", "ell", "jad")
    suite: ClassVar[str | None] = "wang"
    lengths: ClassVar[str]
    strips_: dict[str, int]
    grids_: dict[str, Grid]
    measured_: int

    @classmethod
    def learns_from(cls, suite: str) -> bool:
        return suite == "row lengths"

    def learns_of(self, record: Record) -> bool:
        """Tell whether the row lengths of a matrix have its distribution."""
        return parse_specification(record.matrix)[1].get("lengths") == self.lengths

    def _fit(self, training: TrainingSet) -> None:
        threads = training.records[0].candidate.threads if training.records else 1
        gpu = self.machine_.gpu
        if gpu:
            vector, thread = wang_strip(gpu, "csr-vector"), wang_strip(gpu, "csr-scalar")
            self.strips_ = {f"csr {GPU_VECTOR}": vector, f"csr {GPU_SCALAR}": thread}
        else:
            thread = strip_rows(self.machine_, threads)
            self.strips_ = {"csr": thread}
        self.strips_ |= {"ell": thread, "jad": thread}
        of_lengths = training.where(self.learns_of)
        self.measured_ = len({record.matrix for record in of_lengths.records})
        self.grids_ = {}
        for label, strip in self.strips_.items():  # the times on the paper's grid for a kernel (section 3.1)
            strips, lengths = VECTOR_GRID if _is_vector(label) else THREAD_GRID
            rows, points = {count * strip for count in strips}, []
            for record in of_lengths.records:
                shape = of_lengths.structure(record)
                is_kernels = label in (record.candidate.format, f"csr {record.candidate.kernel}")
                if is_kernels and shape.rows in rows and shape.nnz in {shape.rows * p for p in lengths}:
                    # P, the mean length; I, equation 4.
                    points.append((shape.nnz / shape.rows, shape.rows / strip, record.time_s))
            nnz_per_row, count, time_s = np.array(points).reshape(-1, 3).T.copy()
            self.grids_[label] = Grid(nnz_per_row, count, time_s, self.as_printed)

    def _establish(self) -> None:
        self.beyond_: RatioLines | None = None
        self.fits_: dict[str, RatioLines | SlopeLines] = {}
        for label, grid in self.grids_.items():
            fit: RatioLines | SlopeLines | None
            if _is_vector(label):
                # Section 3.2.1: one pair of functions on each side of the threshold, which belongs to both.
                fit = _vector_fit(grid.where(grid.nnz_per_row <= THRESHOLD), FIXED_LENGTHS[0])
                self.beyond_ = _vector_fit(grid.where(grid.nnz_per_row >= THRESHOLD), FIXED_LENGTHS[1])
            else:
                # Section 3.2.2: f(I) = A I + B of the slopes of T(P), and E(I) at P1.
                fit = SlopeLines.fit(grid, float(P1))
            if fit is not None:
                self.fits_[label] = fit

    def needed(self) -> str:
        return (
            f"matrices with {self.lengths} row lengths, of which they name {self.measured_}: at {P1} "
            f"non-zeros a row in two sizes, and two lengths in each of two sizes; add them by `sparsecast "
            f"calibrate --suites {self.suite}`"
        )

    def formats(self) -> list[str]:
        return list(dict.fromkeys(label.partition(" ")[0] for label in self.fits_))

    def kernels(self, format_name: str) -> tuple[str, ...]:
        if format_name != "csr" or not self.machine_.gpu:
            return ()
        return tuple(label.partition(" ")[2] for label in self.fits_ if label.startswith("csr "))

    def terms(self, candidate: Candidate, blocks: RowBlocks) -> dict[str, Floats]:
        """Return the terms of section 3.2 for each block, under the letters of Guo et al. (2014).

        T1, T2 and T3 are T(P0), t0 and E(I0); f(Y) and g(Y) are f(I0) and g(I0).
        """
        label = self.label(candidate)
        strips = np.ceil(np.maximum(blocks.rows, 1) / self.strips_[label])  # equation 6: I0
        # Below equation 6: P0 is the mode of D for CSR-V, and the maximum for CSR-S, ELL, JAD.
        is_vector = _is_vector(label)
        length = np.maximum(blocks.row_length_mode if is_vector else blocks.row_length_max, 1).astype(float)
        terms = self.fits_[label].terms(length, strips)  # T0 = T(P0) / t0 * E(I0), or f(I0) P0 + g(I0)
        if is_vector and self.beyond_ is not None:
            beyond = self.beyond_.terms(length, strips)
            terms = {name: np.where(length > THRESHOLD, beyond[name], terms[name]) for name in terms}
        return {**terms, "time_s": above_zero(terms["time_s"], self.grids_[label].least_s())}


def _is_vector(label: str) -> bool:
    return label == f"csr {GPU_VECTOR}"


def _vector_fit(grid: Grid, length: int) -> RatioLines | None:
    """Establish T(P) = m P + n and E(I) = p I + q (section 3.2.1); None where the matrices are too few."""
    at_length = grid.where(grid.nnz_per_row == length)
    with_lengths = [
        strips
        for strips in np.unique(at_length.strips[at_length.strips <= FIXED_STRIPS]).tolist()
        if len(np.unique(grid.nnz_per_row[grid.strips == strips])) >= 2
    ]
    if not with_lengths or len(np.unique(at_length.strips)) < 2:
        return None
    # The most strips up to 40: of long rows, a GPU of many multiprocessors holds fewer.
    fixed = grid.where(grid.strips == max(with_lengths))
    t0 = fixed.time_s[fixed.nnz_per_row == length]
    return RatioLines(
        grid.line(fixed.nnz_per_row, fixed.time_s),
        np.array([float(length)]),
        t0[:1],
        (grid.line(at_length.strips, at_length.time_s),),
    )


for _lengths in LENGTHS:
    _members = {
        "__doc__": f"Fitted to matrices with {_lengths} row lengths.",
        "name": f"wang-{_lengths}",
        "lengths": _lengths,
    }
    MODELS.register(f"wang-{_lengths}")(type(f"Wang{_lengths.capitalize()}", (WangModel,), _members))
