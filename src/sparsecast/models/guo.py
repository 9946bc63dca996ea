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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sparsecast.features.row_blocks import RowBlocks
from sparsecast.formats.hyb import HYB
from sparsecast.machines.strips import strip_rows
from sparsecast.models import MODELS
from sparsecast.models.fitting import Floats, Line, above_zero, fitted_costs
from sparsecast.models.model import Model
from sparsecast.models.training import TrainingSet
from sparsecast.records import Candidate

#: The kernel of section 3.5.1 among those that are measured on a GPU: a warp a row.
GPU_CSR_KERNEL = "vector32"

#: Fewest matrices that relationships are fitted to at once, without a grid: two for each of their numbers.
LEAST_SCATTERED = 8


@dataclass(frozen=True, slots=True)
class Grid:
    """Times of the benchmark matrices of one format.

    Attributes
    ----------
    nnz_per_row, strips, time_s : float arrays
        For each matrix x, y and T of sections 3.5.1 and 3.5.2; in section 3.5.3 the strips are x.
    as_printed : bool
        Whether lines are fitted by ordinary least squares.
    """

    nnz_per_row: Floats
    strips: Floats
    time_s: Floats
    as_printed: bool = False

    def line(self, x: Floats, y: Floats) -> Line:
        """Fit a line as the model does."""
        return Line.ordinary(x, y) if self.as_printed else Line.through(x, y)

    def least_s(self) -> float:
        """Return the least time."""
        return float(self.time_s.min())

    @classmethod
    def of(cls, training: TrainingSet, format_name: str, strip: int, as_printed: bool = False) -> Grid:
        """Collect Records of a format whose strips have `strip` rows, or non-zeros for COO.

        The non-zeros a row are those of section 3.4.2; on the paper's benchmark matrices they are all alike.
        """
        found = [training.structure(record) for record in training.records]
        lengths = [each.row_lengths.max if format_name == "ell" else each.row_lengths.mode for each in found]
        units = [each.nnz if format_name == "coo" else each.rows for each in found]
        return cls(
            np.maximum(np.array(lengths, dtype=float), 1),
            np.ceil(np.maximum(np.array(units, dtype=float), 1) / strip),
            np.array([record.time_s for record in training.records]),
            as_printed,
        )

    @classmethod
    def restored(cls, arrays: Sequence[Sequence[float]], as_printed: bool) -> Grid:
        """Return what `to_state` stored."""
        lengths, strips, times = (np.array(each, dtype=float) for each in arrays)
        return cls(lengths, strips, times, as_printed)

    def to_state(self) -> list[list[float]]:
        """Return the three arrays as plain data."""
        return [self.nnz_per_row.tolist(), self.strips.tolist(), self.time_s.tolist()]

    def where(self, chosen: NDArray[np.bool_]) -> Grid:
        """Return some of the matrices."""
        return Grid(self.nnz_per_row[chosen], self.strips[chosen], self.time_s[chosen], self.as_printed)

    def time_over_strips(self, nnz_per_row: float) -> Line:
        """Fit the times of the matrices with this number of non-zeros a row."""
        column = self.where(self.nnz_per_row == nnz_per_row)
        return self.line(column.strips, column.time_s)

    def bilinear(self) -> tuple[float, float, float, float] | None:
        """Fit T = (a + b y) x + (c + d y), all at least 0, to relative residuals, whatever x and y there are.

        None with fewer than LEAST_SCATTERED matrices, or where x or y is one number in all of them.
        """
        x, y = self.nnz_per_row, self.strips
        if len(x) < LEAST_SCATTERED or min(len(np.unique(x)), len(np.unique(y))) < 2:
            return None
        a, b, c, d = fitted_costs(np.column_stack([x, x * y, np.ones(len(x)), y]), self.time_s).tolist()
        return a, b, c, d

    def richest_strips(self) -> float:
        """Return the number of strips that was measured with most row lengths; the largest of equals.

        The paper lets it be any value; more points make a steadier line, and more strips drown the cost
        of starting the threads.
        """
        values, counts = np.unique(self.strips, return_counts=True)
        return float(values[counts == counts.max()].max())

    def lengths_with_strips(self) -> Floats:
        """Return the row lengths that were measured with at least two numbers of strips."""
        values, counts = np.unique(self.nnz_per_row, return_counts=True)
        return values[counts >= 2]


@dataclass(frozen=True)
class CSRModel:
    """Section 3.5.1.

    Attributes
    ----------
    relationship_1 : Line
        T = E(x): non-zeros a row to time, at a fixed number of strips.
    lengths, times_m : float arrays of shape (m,)
        Row lengths of the matrices M, and T2, their times on relationship 1's number of strips.
    relationships_2 : tuple of Line
        T' = E'(y): strips to time, for each of those row lengths.
    """

    relationship_1: Line
    lengths: Floats
    times_m: Floats
    relationships_2: tuple[Line, ...]

    @classmethod
    def fit(cls, grid: Grid) -> CSRModel | None:
        """Establish the relationships (step 1); None where the matrices are too few."""
        if len(grid.time_s) == 0:
            return None
        fixed = grid.where(grid.strips == grid.richest_strips())
        lengths = np.intersect1d(grid.lengths_with_strips(), fixed.nnz_per_row)
        if len(np.unique(fixed.nnz_per_row)) < 2 or len(lengths) == 0:
            return None
        lines = tuple(grid.time_over_strips(length) for length in lengths)
        times_m = np.array([fixed.time_s[fixed.nnz_per_row == length][0] for length in lengths])
        return cls(grid.line(fixed.nnz_per_row, fixed.time_s), lengths, times_m, lines)

    @classmethod
    def fit_scattered(cls, grid: Grid) -> CSRModel | None:
        """Fit matrices on no grid; None where they are too few. There is a M of each of their row lengths."""
        found = grid.bilinear()
        if found is None:
            return None
        a, b, c, d = found
        lengths = np.unique(grid.nnz_per_row)
        on_one_strip = Line(a + b, c + d)
        lines = tuple(Line(b * x + d, a * x + c) for x in lengths.tolist())
        return cls(on_one_strip, lengths, on_one_strip(lengths), lines)

    def terms(self, nnz_per_row: Floats, strips: Floats) -> dict[str, Floats]:
        """Estimate (step 2): T0 = (T1 / T2) * T3."""
        time_1 = self.relationship_1(nnz_per_row)  # T1 = E(x0)
        # M may be any benchmark matrix; the one nearest to the target's row length is taken.
        nearest = np.argmin(np.abs(np.log(self.lengths)[:, None] - np.log(nnz_per_row)), axis=0)
        time_2 = self.times_m[nearest]  # T2: the time of M
        slopes = np.array([line.slope for line in self.relationships_2])
        intercepts = np.array([line.intercept for line in self.relationships_2])
        time_3 = slopes[nearest] * strips + intercepts[nearest]  # T3 = E'(y0)
        return {"T1": time_1, "T2": time_2, "T3": time_3, "time_s": time_1 / time_2 * time_3}


@dataclass(frozen=True)
class ELLModel:
    """Section 3.5.2.

    Attributes
    ----------
    coefficient : Line
        Relationship 2, f(y): strips to the slope of time over non-zeros a row.
    at_x1 : Line
        Relationship 3, e(y): strips to time, at `x1` non-zeros a row.
    x1 : float
    has_floor : bool
        Whether the time has a floor that the paper does not print.
    """

    coefficient: Line
    at_x1: Line
    x1: float
    has_floor: bool = True

    @classmethod
    def fit(cls, grid: Grid, x1: float | None = None) -> ELLModel | None:
        """Establish the relationships (step 1); None where the matrices are too few.

        x1 may be any row length that was measured with two numbers of strips; by default it is the least.
        """
        lengths = grid.lengths_with_strips()
        fixed = x1 if x1 is not None else next(iter(lengths), None)
        rows = {strips: grid.where(grid.strips == strips) for strips in np.unique(grid.strips)}
        slopes = {
            # Relationship 1, T = f(y1) * x + g(y1), once for each number of strips y1.
            strips: grid.line(row.nnz_per_row, row.time_s).slope
            for strips, row in rows.items()
            if len(np.unique(row.nnz_per_row)) >= 2
        }
        if len(slopes) < 2 or fixed not in lengths:
            return None
        assert fixed is not None
        coefficient = grid.line(np.array(list(slopes)), np.array(list(slopes.values())))
        return cls(coefficient, grid.time_over_strips(fixed), float(fixed), not grid.as_printed)

    @classmethod
    def fit_scattered(cls, grid: Grid) -> ELLModel | None:
        """Fit matrices on no grid; None where they are too few. Relationship 3 is at one non-zero a row."""
        found = grid.bilinear()
        if found is None:
            return None
        a, b, c, d = found
        return cls(Line(b, a), Line(b + d, a + c), 1.0)

    def terms(self, nnz_per_row: Floats, strips: Floats) -> dict[str, Floats]:
        """Estimate (step 2): T0 = f(Y) * X + g(Y), with g(Y) = e(Y) - f(Y) * x1."""
        slope = self.coefficient(strips)  # f(Y)
        intercept = self.at_x1(strips) - slope * self.x1  # g(Y)
        time_s = slope * nnz_per_row + intercept
        if self.has_floor:
            # Below x1 the line may fall under what a product of empty rows takes; it cannot fall to zero.
            time_s = np.maximum(time_s, self.at_x1(strips) / max(self.x1, 1.0))
        return {"f(Y)": slope, "g(Y)": intercept, "time_s": time_s}


@MODELS.register("guo")
class GuoModel(Model):
    """Guo's four models, each fitted where the Profile has the benchmark matrices it needs.

    Parameters
    ----------
    as_printed : bool
        Whether the lines are ordinary least squares without a floor. Of published results, which lie on no
        grid, it changes COO's line alone.
    """

    name: ClassVar[str] = "guo"
    version: ClassVar[int] = 2
    covers: ClassVar[tuple[str, ...] | None] = ("csr", "ell", "coo", "hyb")
    compared: ClassVar[tuple[Mapping[str, Any], ...]] = ({}, {"as_printed": True})

    def __init__(self, as_printed: bool = False) -> None:
        self.as_printed = as_printed

    @classmethod
    def learns_from(cls, suite: str) -> bool:
        """Tell whether a suite has the benchmark matrices of the paper, or published results."""
        return suite in ("strips", "entry strips", "published")

    def _fit(self, training: TrainingSet) -> None:
        records = training.records
        threads = records[0].candidate.threads if records else 1
        self.strips_ = {name: strip_rows(self.machine_, threads, name) for name in ("csr", "ell", "coo")}
        found = {name: self._used(training, name) for name in self.strips_}
        self.grids_ = {
            name: Grid.of(found[name], name, self.strips_[name], self.as_printed) for name in found
        }
        self.is_on_grid_ = not any(record.suite == "published" for record in records)
        kernels = dict.fromkeys(record.candidate.kernel for record in found["csr"].records)
        self.csr_kernels_ = tuple(kernels) if self.machine_.gpu else ()
        self._establish()

    def _establish(self) -> None:
        """Establish the relationships that the grids suffice for."""
        fit_csr = CSRModel.fit if self.is_on_grid_ else CSRModel.fit_scattered
        fit_ell = ELLModel.fit if self.is_on_grid_ else ELLModel.fit_scattered
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
        """Return the Records that the relationships of a format are established with."""
        suites = "entry strips" if format_name == "coo" else "strips", "published"
        own = training.where(lambda r: r.candidate.format == format_name and r.suite in suites)
        if not self.machine_.gpu or not own.records:
            return own
        # A format has one kernel, but for CSR's, and for the libraries of published results: their first one.
        is_papers = format_name == "csr" and own.records[0].suite != "published"
        kernel = GPU_CSR_KERNEL if is_papers else own.records[0].candidate.kernel
        return own.where(lambda record: record.candidate.kernel == kernel)

    def _state(self) -> dict[str, Any]:
        grids = {name: grid.to_state() for name, grid in self.grids_.items()}
        kernels = list(self.csr_kernels_)
        return {"strips": self.strips_, "kernels": kernels, "grids": grids, "is_on_grid": self.is_on_grid_}

    def _restore(self, learned: Mapping[str, Any]) -> None:
        self.strips_, self.is_on_grid_ = dict(learned["strips"]), learned["is_on_grid"]
        self.csr_kernels_ = tuple(learned["kernels"])
        self.grids_ = {
            name: Grid.restored(arrays, self.as_printed) for name, arrays in learned["grids"].items()
        }
        self._establish()

    def needed(self) -> str:
        """Return which matrices are missing, and what adds them."""
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
        """Return the kernel of the paper for CSR on a GPU; the other formats have one each."""
        return self.csr_kernels_ if format_name == "csr" else ()

    def formats(self) -> list[str]:
        """Return the formats whose relationships are established."""
        found = {"csr": self.csr_, "ell": self.ell_, "coo": self.coo_}
        known = [name for name, model in found.items() if model is not None]
        return [*known, "hyb"] if {"ell", "coo"} <= set(known) else known

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
        found = self.csr_.terms(nnz_per_row, strips)
        if self.csr_beyond_ is not None and (nnz_per_row > self._threshold).any():
            beyond = self.csr_beyond_.terms(nnz_per_row, strips)
            is_beyond = nnz_per_row > self._threshold
            found = {name: np.where(is_beyond, beyond[name], found[name]) for name in found}
        return self._possible("csr", found)

    def _possible(self, format_name: str, terms: dict[str, Floats]) -> dict[str, Floats]:
        least_s = self.grids_[format_name].least_s()
        return {**terms, "time_s": above_zero(terms["time_s"], least_s)}

    def _ell(self, width: NDArray[np.int64], blocks: RowBlocks) -> dict[str, Floats]:
        assert self.ell_ is not None
        found = self.ell_.terms(np.maximum(width, 1).astype(float), self._strips("ell", blocks.rows))
        return self._possible("ell", found)

    def _coo(self, nnz: NDArray[np.int64]) -> Floats:
        assert self.coo_ is not None
        time_s = self.coo_(self._strips("coo", nnz))  # section 3.5.3, step 2: T0 = E(x0)
        return above_zero(time_s, self.grids_["coo"].least_s())

    def _hyb(self, candidate: Candidate, blocks: RowBlocks) -> dict[str, Floats]:
        """Section 3.5.4: T0 = T1 + T2, the ELL part at the threshold's width and the COO part."""
        width, overflow = HYB.split_of(candidate, blocks)  # z0, the threshold
        time_1 = np.where(width > 0, self._ell(width, blocks)["time_s"], 0.0)
        # A part without entries is not run; a matrix without entries costs one strip of COO.
        time_2 = np.where((overflow > 0) | (width == 0), self._coo(overflow), 0.0)
        return {"T1": time_1, "T2": time_2, "time_s": time_1 + time_2}
