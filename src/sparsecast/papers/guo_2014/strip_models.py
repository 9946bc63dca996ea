"""The strip models of Guo, Wang and Chen (2014) for CSR, ELL, COO and HYB.

Source: P. Guo, L. Wang, P. Chen, "A Performance Modeling and Optimization Analysis Tool for Sparse
Matrix-Vector Multiplication on GPUs", IEEE TPDS 25 (2014), sections 3.4 and 3.5. A strip is the rows (or
non-zeros, for COO) that the device handles in one full load; the benchmark matrices have whole numbers of
strips and rows of one length, and every relationship between their times is a straight line.

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

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats.hyb import HYB
from sparsecast.machines.machine import strip_rows
from sparsecast.models import MODELS
from sparsecast.models.fitting import Floats, above_zero
from sparsecast.models.model import AsPrinted, Model
from sparsecast.models.strip_lines import LEAST_SCATTERED, Grid, RatioLines, SlopeLines
from sparsecast.models.training import TrainingSet
from sparsecast.records import Candidate

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
        used = {name: self._used(training, name) for name in self.strips_}
        self.grids_ = {
            name: Grid.of(records, name, self.strips_[name], self.as_printed)
            for name, records in used.items()
        }
        self.is_on_grid_ = not any(record.suite == "published" for record in records)
        kernels = dict.fromkeys(record.candidate.kernel for record in used["csr"].records)
        self.csr_kernels_ = tuple(kernels) if self.machine_.gpu else ()

    def _establish(self) -> None:
        fit_csr = RatioLines.fit if self.is_on_grid_ else RatioLines.fit_scattered
        fit_ell = SlopeLines.fit if self.is_on_grid_ else SlopeLines.fit_scattered
        csr, ell, coo = (self.grids_[name] for name in ("csr", "ell", "coo"))
        self.csr_ = fit_csr(csr.where(csr.nnz_per_row <= self._threshold))
        self.csr_beyond_ = fit_csr(csr.where(csr.nnz_per_row >= self._threshold))
        self.ell_ = fit_ell(ell)
        # Section 3.5.3, relationship 1, T = E(x): strips of non-zeros to time.
        self.coo_ = coo.line(coo.strips, coo.time_s) if len(np.unique(coo.strips)) >= 2 else None

    @property
    def _threshold(self) -> float:
        """Non-zeros a row beyond which CSR has other relationships: the threads of a GPU's block."""
        return float(self.machine_.gpu.threads_per_block) if self.machine_.gpu else np.inf

    def _used(self, training: TrainingSet, format_name: str) -> TrainingSet:
        suites = "entry strips" if format_name == "coo" else "strips", "published"
        used = training.where(lambda r: r.candidate.format == format_name and r.suite in suites)
        if not self.machine_.gpu or not used.records:
            return used
        # A format has one kernel, but for CSR's, and for the libraries of published results: their first one.
        is_papers = format_name == "csr" and used.records[0].suite != "published"
        kernel = GPU_CSR_KERNEL if is_papers else used.records[0].candidate.kernel
        return used.where(lambda record: record.candidate.kernel == kernel)

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
        fits = {"csr": self.csr_, "ell": self.ell_, "coo": self.coo_}
        fitted = [name for name, fit in fits.items() if fit is not None]
        return [*fitted, "hyb"] if {"ell", "coo"} <= set(fitted) else fitted

    def terms(self, candidate: Candidate, blocks: RowBlocks) -> dict[str, Floats]:
        """Return the terms of section 3.5 for each block, under the paper's letters."""
        match candidate.format:
            case "hyb":
                return self._hyb(candidate, blocks)
            case "csr":
                return self._csr(blocks)
            case "ell":
                return self._ell(blocks.row_length_max, blocks)  # section 3.4.2: the maximum of D
        return {"time_s": self._coo(blocks.nnz)}

    def _strips(self, format_name: str, units: NDArray[np.int64]) -> Floats:
        return np.ceil(np.maximum(units, 1) / self.strips_[format_name])  # section 3.4.1: I

    def _csr(self, blocks: RowBlocks) -> dict[str, Floats]:
        assert self.csr_ is not None
        nnz_per_row = np.maximum(blocks.row_length_mode, 1).astype(float)  # section 3.4.2: the mode of D
        strips = self._strips("csr", blocks.rows)
        terms = self.csr_.terms(nnz_per_row, strips)
        if self.csr_beyond_ is not None and (nnz_per_row > self._threshold).any():
            beyond = self.csr_beyond_.terms(nnz_per_row, strips)
            is_beyond = nnz_per_row > self._threshold
            terms = {name: np.where(is_beyond, beyond[name], terms[name]) for name in terms}
        return self._possible("csr", terms)

    def _possible(self, format_name: str, terms: dict[str, Floats]) -> dict[str, Floats]:
        least_s = self.grids_[format_name].least_s()
        return {**terms, "time_s": above_zero(terms["time_s"], least_s)}

    def _ell(self, width: NDArray[np.int64], blocks: RowBlocks) -> dict[str, Floats]:
        assert self.ell_ is not None
        terms = self.ell_.terms(np.maximum(width, 1).astype(float), self._strips("ell", blocks.rows))
        return self._possible("ell", terms)

    def _coo(self, nnz: NDArray[np.int64]) -> Floats:
        assert self.coo_ is not None
        time_s = self.coo_(self._strips("coo", nnz))  # section 3.5.3, step 2: T0 = E(x0)
        return above_zero(time_s, self.grids_["coo"].least_s())

    def _hyb(self, candidate: Candidate, blocks: RowBlocks) -> dict[str, Floats]:
        """Section 3.5.4: T0 = T1 + T2, the ELL part at the threshold's width and the COO part."""
        least_rows: Any = candidate.parameters.get("least_rows", 1)
        width, overflow = HYB.split(blocks, least_rows)  # z0, the threshold
        time_1 = np.where(width > 0, self._ell(width, blocks)["time_s"], 0.0)
        # A part without entries is not run; a matrix without entries costs one strip of COO.
        time_2 = np.where((overflow > 0) | (width == 0), self._coo(overflow), 0.0)
        return {"T1": time_1, "T2": time_2, "time_s": time_1 + time_2}
