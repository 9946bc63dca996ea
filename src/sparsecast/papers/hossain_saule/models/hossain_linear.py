"""The linear model of Hossain and Saule for one process.

Source: M. M. Hossain, E. Saule, "Performance Model of Iterated SpMV for Distributed System", section III.A.
For random matrices of one number of rows, the time is a straight line over the non-zeros a row, measured at
1, 2, 4 .. 128. A matrix with r rows is forecast from the lines L1 and L2 of the next lower and the next
higher number of rows, linear in r.

What the paper leaves open, and what is done here:

- Its processes communicate. One process does not: the time is that of the local product, in CSR and COO.
- Beyond the rows or the non-zeros a row that were measured, the nearest two lines go on, and the term
  `extrapolated` says how many seconds come from there.
- The lines are fitted to relative residuals and never fall; `as_printed` fits ordinary least squares. Where
  they give no time above 0, the least measured one takes its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from sparsecast.features.row_blocks import RowBlocks
from sparsecast.machines.machine import PROCESSOR
from sparsecast.models import MODELS
from sparsecast.models.fitting import Floats, Line, above_zero
from sparsecast.models.model import Model
from sparsecast.models.training import TrainingSet
from sparsecast.records import Candidate

#: The formats of all three models of the paper.
FORMATS_OF_THE_PAPER = ("csr", "coo")


@MODELS.register("hossain-linear")
class HossainLinear(Model):
    """Lines of time over non-zeros a row, between which forecasts are linear in the rows.

    Parameters
    ----------
    as_printed : bool
        Whether the lines are ordinary least squares.

    Attributes
    ----------
    points_ : dict of str to list of list of float
        For each format the rows, non-zeros a row and seconds that were measured.
    """

    name: ClassVar[str] = "hossain-linear"
    devices: ClassVar[tuple[str, ...] | None] = (PROCESSOR,)
    covers: ClassVar[tuple[str, ...] | None] = FORMATS_OF_THE_PAPER
    suite: ClassVar[str | None] = "hossain"
    compared: ClassVar[tuple[Mapping[str, Any], ...]] = ({}, {"as_printed": True})
    points_: dict[str, list[list[float]]]

    def __init__(self, as_printed: bool = False) -> None:
        self.as_printed = as_printed

    @classmethod
    def learns_from(cls, suite: str) -> bool:
        """Tell whether a suite has the random matrices of the paper."""
        return suite == "hossain"

    def _fit(self, training: TrainingSet) -> None:
        self.points_ = {}
        for name in FORMATS_OF_THE_PAPER:
            own = [record for record in training.records if record.candidate.format == name]
            shapes = [training.structure(record) for record in own]
            self.points_[name] = [
                [float(shape.rows) for shape in shapes],
                [shape.nnz / shape.rows for shape in shapes],
                [record.time_s for record in own],
            ]

    def _establish(self) -> None:
        """Fit a line for each number of rows that was measured with two row lengths."""
        self.lines_: dict[str, dict[float, Line]] = {}
        fit = Line.ordinary if self.as_printed else Line.through
        for name, columns in self.points_.items():
            rows, lengths, time_s = map(np.array, columns)
            lines = {}
            for count in np.unique(rows).tolist():
                here = rows == count
                if len(np.unique(lengths[here])) >= 2:
                    lines[count] = fit(lengths[here], time_s[here])
            if len(lines) >= 2:
                self.lines_[name] = lines

    def needed(self) -> str:
        """Return which matrices are missing, and what measures them."""
        count = max(len(columns[0]) for columns in self.points_.values())
        return (
            f"random matrices of two numbers of rows, each with two numbers of non-zeros a row, of which "
            f"they name {count}; add them by `sparsecast calibrate --suites hossain`"
        )

    def formats(self) -> list[str]:
        """Return the formats with lines for two numbers of rows."""
        return list(self.lines_)

    def terms(self, candidate: Candidate, blocks: RowBlocks) -> dict[str, Floats]:
        """Return y1 and y2, the times on the lines L1 and L2, what is extrapolated, and the forecast."""
        rows, lengths, time_s = map(np.array, self.points_[candidate.format])
        known = np.array(list(self.lines_[candidate.format]))
        r = blocks.rows.astype(float)
        x = blocks.nnz / np.maximum(r, 1)
        y1, y2, y = self._between(candidate.format, r, x)
        is_line = np.isin(rows, known)
        within = np.clip(r, known[0], known[-1]), np.clip(x, lengths[is_line].min(), lengths[is_line].max())
        beyond = y - self._between(candidate.format, *within)[2]
        least_s = float(time_s.min())
        return {"y1": y1, "y2": y2, "extrapolated": beyond, "time_s": above_zero(y, least_s)}

    def _between(self, format_name: str, r: Floats, x: Floats) -> tuple[Floats, Floats, Floats]:
        """Return y1, y2 and y at rows r and non-zeros a row x (section III.A)."""
        lines = self.lines_[format_name]
        rows = np.array(list(lines))
        m, c = (np.array([getattr(line, name) for line in lines.values()]) for name in ("slope", "intercept"))
        upper = np.clip(np.searchsorted(rows, r), 1, len(rows) - 1)
        lower = upper - 1
        y1, y2 = m[lower] * x + c[lower], m[upper] * x + c[upper]  # y1 = m1 x + c1, y2 = m2 x + c2
        return y1, y2, y1 + (y2 - y1) * (r - rows[lower]) / (rows[upper] - rows[lower])
