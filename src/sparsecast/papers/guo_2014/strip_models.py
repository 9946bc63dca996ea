"""The strip models of Guo, Wang and Chen (2014) for CSR, ELL, COO and HYB, and their benchmark matrices.

Source: P. Guo, L. Wang, P. Chen, "A Performance Modeling and Optimization Analysis Tool for Sparse
Matrix-Vector Multiplication on GPUs", IEEE TPDS 25 (2014), sections 3.4 and 3.5. A strip is the rows (or
non-zeros, for COO) that the device handles in one full load; the benchmark matrices (section 3.2) have whole
numbers of strips and rows of one length, and every relationship between their times is a straight line. The
paper leaves their columns open: here they lie in a band around the diagonal.

Where this file differs from the print, and why:

- Section 3.5.2, step 2 prints g(Y) = e(Y) - f(Y) * Y. Relationship 3 says g(y) = e(y) - f(y) * x1, with
  x1 its fixed number of non-zeros a row; that is what is done here.
- Section 3.5.4 names strips x and non-zeros a row y, the other way round than section 3.5.2; here as there.
- The non-zeros a row are at least 1, the least that section 3.2.1 admits; the mode of a matrix whose
  rows are mostly empty is 0.
- The straight lines are fitted to relative residuals, so that the small times count as much as the large
  ones, and go through the origin where they would otherwise start below it; T0 of ELL has a floor. With
  `as_printed` they are ordinary least squares, and only where they give no time above 0 the least measured
  one takes its place.
- Section 3.5.1 says that the linear relationships of CSR differ below and above as many non-zeros a row as a
  block has threads (1,024), and no more. Here each side has relationships of its own, a matrix on the
  threshold belongs to both, and where too few matrices beyond it were measured, the lines from below go on.
  That is for GPUs: a processor has no thread blocks.
- The paper's CSR kernel has a warp a row: of the CSR kernels that were measured on a GPU, the one with 32
  threads a row is fitted.

Published results are of matrices that lie on no grid of strips and non-zeros a row. The relationships are
then fitted to all of them at once, in the one equation that they come to, T = (a + b y) x + (c + d y): it is
the three of ELL, and with a matrix M of the target's row length, for which T1 = T2, it is those of CSR. COO's
one line is fitted as it is.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats.hyb import HYB
from sparsecast.machines.data_sheet import GPU
from sparsecast.machines.machine import Machine, guo_strip, strip_rows
from sparsecast.matrices.families import FAMILIES, Family
from sparsecast.matrices.suites import (
    OPTIONAL,
    SUITES,
    Part,
    Suite,
    SuiteMatrix,
    ends_first,
    in_turn,
    suite_matrix,
)
from sparsecast.matrices.synthesis import varied_matrix
from sparsecast.models import MODELS
from sparsecast.models.fitting import Floats, above_zero
from sparsecast.models.model import AsPrinted, Model
from sparsecast.models.strip_lines import LEAST_SCATTERED, Grid, RatioLines, SlopeLines
from sparsecast.models.training import TrainingSet
from sparsecast.records import Candidate

#: Section 3.2.2: strips 1 to 10; non-zeros a row 4, 16 ... 1024 for CSR and ELL, 10, 20 ... 100 for COO.
STRIPS = tuple(range(1, 11))
NNZ_PER_ROW = (4, 16, 64, 256, 1024)
ENTRY_STRIPS = tuple(range(10, 101, 10))

#: Of these grids what a usual calibration requires.
_COARSE_STRIPS = (1, 5, 10)
_COARSE_NNZ_PER_ROW = (4, 16, 64)
_COARSE_ENTRY_STRIPS = (10, 50, 100)

#: Non-zeros a row of the matrices for CSR: two more lengths than for a processor, beyond the threads of a
#: block, from where on section 3.5.1 has another line.
CSR_NNZ_PER_ROW = (*NNZ_PER_ROW, 2048, 3072)


def _strips(rows: int, nnz_per_row: int) -> csr_array[Any]:
    return varied_matrix(rows, nnz_per_row, "fixed", 0.0, seed=0)


FAMILIES.register("strips")(Family(_strips, lambda rows, nnz_per_row: rows * nnz_per_row))


@SUITES.register("guo")
class Guo(Suite):
    """Rows of one length in whole strips; for COO, strips of non-zeros."""

    name = "guo"

    def usual(self, machine: Machine, threads: int) -> list[Part]:
        """Return a coarse grid as required, then what makes it fine; for a GPU, a part for each format.

        Our own model learns of a GPU's kernels from matrices of many kinds: none of these is required there.
        """
        if machine.gpu is not None:
            return [Part(OPTIONAL, matrices) for matrices in _of_gpu(machine.gpu)]
        rows = strip_rows(None, threads)
        grid = [(strips, length) for length in NNZ_PER_ROW for strips in STRIPS if length < strips * rows]
        coarse = set(product(_COARSE_STRIPS, _COARSE_NNZ_PER_ROW))
        # All formats on these: it gives the models that see more than strips a first look at each.
        required = [
            suite_matrix("strips", strips * rows, length, formats=())
            for strips, length in grid
            if (strips, length) in coarse
        ]
        required += [entry_strips_benchmark(rows, strips) for strips in _COARSE_ENTRY_STRIPS]
        entries = [
            entry_strips_benchmark(rows, strips)
            for strips in ENTRY_STRIPS
            if strips not in _COARSE_ENTRY_STRIPS
        ]
        # Long rows first: they carry the fixed-strips relationships furthest.
        rest = [point for point in grid if point not in coarse]
        rest.sort(key=lambda point: point[0] not in _COARSE_STRIPS)
        both = ("csr", "ell")
        fine = [suite_matrix("strips", strips * rows, length, formats=both) for strips, length in rest]
        return [Part(0, required), Part(OPTIONAL + 1, entries), Part(OPTIONAL + 3, fine)]

    def whole(self, machine: Machine, threads: int) -> list[SuiteMatrix]:
        return in_turn(_of_gpu(machine.gpu)) if machine.gpu is not None else super().whole(machine, threads)


def entry_strips_benchmark(strip: int, strips: int) -> SuiteMatrix:
    """Return the matrix of `strips` strips of `strip` non-zeros.

    It has one strip of rows, and as many non-zeros a row as strips of non-zeros are wanted.
    """
    return suite_matrix("strips", strip, strips, suite="entry strips", formats=("coo",))


def _of_gpu(gpu: GPU) -> list[list[SuiteMatrix]]:
    """Return the matrices for CSR, for ELL and for COO, each in strips of its own kernel."""
    rows = {name: guo_strip(gpu, name) for name in ("csr", "ell", "coo")}
    # The shortest and the longest rows and the fewest and the most strips first.
    suites = [
        [
            suite_matrix("strips", strips * rows[name], length, formats=(name,))
            for length in ends_first(lengths)
            for strips in ends_first(STRIPS)
            if length <= strips * rows[name]
        ]
        for name, lengths in (("csr", CSR_NNZ_PER_ROW), ("ell", NNZ_PER_ROW))
    ]
    return [*suites, [entry_strips_benchmark(rows["coo"], strips) for strips in ends_first(ENTRY_STRIPS)]]


#: The kernel of section 3.5.1 among those that are measured on a GPU: a warp a row.
GPU_CSR_KERNEL = "vector32"


@MODELS.register("guo")
class GuoModel(AsPrinted, Model):
    """Guo's four models, each fitted where the Profile has the benchmark matrices it needs.

    `as_printed` takes ordinary least squares without a floor. Of published results, which lie on no grid, it
    changes COO's line alone.
    """

    name: ClassVar[str] = "guo"
    version: ClassVar[int] = 3
    covers: ClassVar[tuple[str, ...] | None] = ("csr", "ell", "coo", "hyb")
    strips_: dict[str, int]
    grids_: dict[str, Grid]
    csr_kernels_: tuple[str, ...]
    is_on_grid_: bool

    @classmethod
    def learns_from(cls, suite: str) -> bool:
        return suite in ("strips", "entry strips", "published")

    def _fit(self, training: TrainingSet) -> None:
        records = training.records
        threads = records[0].candidate.threads if records else 1
        self.strips_ = {name: strip_rows(self.machine_, threads, name) for name in ("csr", "ell", "coo")}
        self.is_on_grid_ = not any(record.suite == "published" for record in records)
        self.grids_, self.csr_kernels_ = {}, ()
        for name, strip in self.strips_.items():
            suites = "entry strips" if name == "coo" else "strips", "published"
            used = [r for r in records if r.candidate.format == name and r.suite in suites]
            if self.machine_.gpu and used:
                # A format has one kernel, but for CSR's, and for libraries of published results: their first.
                is_papers = name == "csr" and used[0].suite != "published"
                kernel = GPU_CSR_KERNEL if is_papers else used[0].candidate.kernel
                used = [record for record in used if record.candidate.kernel == kernel]
                if name == "csr" and used:
                    self.csr_kernels_ = (kernel,)
            of_format = replace(training, records=tuple(used))
            self.grids_[name] = Grid.of(of_format, name, strip, self.as_printed)

    def _establish(self) -> None:
        fit_csr = RatioLines.fit if self.is_on_grid_ else RatioLines.fit_scattered
        fit_ell = SlopeLines.fit if self.is_on_grid_ else SlopeLines.fit_scattered
        csr, ell, coo = (self.grids_[name] for name in ("csr", "ell", "coo"))
        fits = {
            "csr": fit_csr(csr.where(csr.nnz_per_row <= self._threshold)),
            "ell": fit_ell(ell),
            # Section 3.5.3, relationship 1, T = E(x): strips of non-zeros to time.
            "coo": coo.line(coo.strips, coo.time_s) if len(np.unique(coo.strips)) >= 2 else None,
        }
        self.fits_: dict[str, Any] = {name: fit for name, fit in fits.items() if fit is not None}
        self.csr_beyond_ = fit_csr(csr.where(csr.nnz_per_row >= self._threshold))

    @property
    def _threshold(self) -> float:
        """Non-zeros a row beyond which CSR has other relationships: the threads of a GPU's block."""
        return float(self.machine_.gpu.threads_per_block) if self.machine_.gpu else np.inf

    def needed(self) -> str:
        count = max(len(grid.time_s) for grid in self.grids_.values())
        if not self.is_on_grid_:
            return (
                f"{LEAST_SCATTERED} matrices of one format, in two sizes and with two row lengths, of which "
                f"they name {count}; name a profile with more results"
            )
        return (
            f"matrices of whole strips with rows of one length, in two sizes with two lengths in each, of "
            f"which they name at most {count} for a format; add them by `sparsecast calibrate --suites guo`"
        )

    def kernels(self, format_name: str) -> tuple[str, ...]:
        return self.csr_kernels_ if format_name == "csr" else ()

    def formats(self) -> list[str]:
        return [*self.fits_, "hyb"] if {"ell", "coo"} <= self.fits_.keys() else list(self.fits_)

    def terms(self, candidate: Candidate, blocks: RowBlocks) -> dict[str, Floats]:
        """Return the terms of section 3.5 for each block, under the paper's letters."""
        if candidate.format == "ell":
            return self._ell(blocks.row_length_max, blocks)  # section 3.4.2: the maximum of D
        if candidate.format == "coo":
            return {"time_s": self._coo(blocks.nnz)}
        if candidate.format == "hyb":
            # Section 3.5.4: T0 = T1 + T2, the ELL part at the threshold's width and the COO part.
            least_rows: Any = candidate.parameters.get("least_rows", 1)
            width, overflow = HYB.split(blocks, least_rows)  # z0, the threshold
            time_1 = np.where(width > 0, self._ell(width, blocks)["time_s"], 0.0)
            # A part without entries is not run; a matrix without entries costs one strip of COO.
            time_2 = np.where((overflow > 0) | (width == 0), self._coo(overflow), 0.0)
            return {"T1": time_1, "T2": time_2, "time_s": time_1 + time_2}
        nnz_per_row = np.maximum(blocks.row_length_mode, 1).astype(float)  # section 3.4.2: the mode of D
        strips, is_beyond = self._strips("csr", blocks.rows), nnz_per_row > self._threshold
        terms = self.fits_["csr"].terms(nnz_per_row, strips)
        if self.csr_beyond_ is not None and is_beyond.any():
            beyond = self.csr_beyond_.terms(nnz_per_row, strips)
            terms = {name: np.where(is_beyond, beyond[name], terms[name]) for name in terms}
        return {**terms, "time_s": above_zero(terms["time_s"], self.grids_["csr"].least_s())}

    def _strips(self, format_name: str, units: NDArray[np.int64]) -> Floats:
        return np.ceil(np.maximum(units, 1) / self.strips_[format_name])  # section 3.4.1: I

    def _ell(self, width: NDArray[np.int64], blocks: RowBlocks) -> dict[str, Floats]:
        terms = self.fits_["ell"].terms(np.maximum(width, 1).astype(float), self._strips("ell", blocks.rows))
        return {**terms, "time_s": above_zero(terms["time_s"], self.grids_["ell"].least_s())}

    def _coo(self, nnz: NDArray[np.int64]) -> Floats:
        time_s = self.fits_["coo"](self._strips("coo", nnz))  # section 3.5.3, step 2: T0 = E(x0)
        return above_zero(time_s, self.grids_["coo"].least_s())
