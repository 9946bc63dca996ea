"""The straight lines that two papers fit to matrices of whole strips: of CSR's kind, and of ELL's kind.

Sources: P. Guo, L. Wang, P. Chen (2014), sections 3.4 and 3.5; R. Wang, T. Gu, M. Li (2017), section 3.2,
whose functions are the same ones. Section numbers here are Guo's. What differs from each print is said at the
heads of their models.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsecast.models.fitting import Floats, Line, fitted_costs
from sparsecast.models.training import TrainingSet

#: Fewest matrices that relationships are fitted to at once, without a grid: two for each of their numbers.
LEAST_SCATTERED = 8


@dataclass(frozen=True, slots=True)
class Grid:
    """Times of the benchmark matrices of one format."""

    #: nnz_per_row, strips, time_s: for each matrix x, y and T of sections 3.5.1 and 3.5.2; in section 3.5.3
    #: the strips are x.
    nnz_per_row: Floats
    strips: Floats
    time_s: Floats
    as_printed: bool = False  # whether lines are fitted by ordinary least squares

    def line(self, x: Floats, y: Floats) -> Line:
        return Line.ordinary(x, y) if self.as_printed else Line.through(x, y)

    def least_s(self) -> float:
        return float(self.time_s.min())

    @classmethod
    def of(cls, training: TrainingSet, format_name: str, strip: int, as_printed: bool = False) -> Grid:
        """Collect Records of a format whose strips have `strip` rows, or non-zeros for COO.

        The non-zeros a row are those of section 3.4.2; on the paper's benchmark matrices they are all alike.
        """
        structures = [training.structure(record) for record in training.records]
        length = "max" if format_name == "ell" else "mode"
        unit = "nnz" if format_name == "coo" else "rows"
        lengths = [getattr(structure.row_lengths, length) for structure in structures]
        units = [getattr(structure, unit) for structure in structures]
        return cls(
            np.maximum(np.array(lengths, dtype=float), 1),
            np.ceil(np.maximum(np.array(units, dtype=float), 1) / strip),
            np.array([record.time_s for record in training.records]),
            as_printed,
        )

    def where(self, chosen: NDArray[np.bool_]) -> Grid:
        return Grid(self.nnz_per_row[chosen], self.strips[chosen], self.time_s[chosen], self.as_printed)

    def time_over_strips(self, nnz_per_row: float) -> Line:
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
class RatioLines:
    """Time as a ratio of two lines (section 3.5.1, CSR): T0 = (T1 / T2) * T3."""

    relationship_1: Line  # T = E(x): non-zeros a row to time, at a fixed number of strips
    #: lengths, times_m: shape (m,): row lengths of the matrices M, and T2, their times on relationship 1's
    #: number of strips.
    lengths: Floats
    times_m: Floats
    relationships_2: tuple[Line, ...]  # T' = E'(y): strips to time, for each of those row lengths

    @classmethod
    def fit(cls, grid: Grid) -> RatioLines | None:
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
    def fit_scattered(cls, grid: Grid) -> RatioLines | None:
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
class SlopeLines:
    """Time as a line whose slope is a line of the strips (section 3.5.2, ELL)."""

    coefficient: Line  # relationship 2, f(y): strips to the slope of time over non-zeros a row
    at_x1: Line  # relationship 3, e(y): strips to time, at `x1` non-zeros a row
    x1: float
    has_floor: bool = True  # whether the time has a floor that the paper does not print

    @classmethod
    def fit(cls, grid: Grid, x1: float | None = None) -> SlopeLines | None:
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
    def fit_scattered(cls, grid: Grid) -> SlopeLines | None:
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
