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

from collections import Counter
from typing import ClassVar

import numpy as np

from sparsecast.features.row_blocks import RowBlocks
from sparsecast.machines.machine import PROCESSOR
from sparsecast.models import MODELS
from sparsecast.models.fitting import Floats
from sparsecast.models.model import AsPrinted, Model
from sparsecast.models.training import TrainingSet
from sparsecast.papers.hossain_saule.row_lines import RowLines
from sparsecast.papers.hossain_saule.table_one import FORMATS_OF_THE_PAPER
from sparsecast.records import Candidate


@MODELS.register("hossain-linear")
class HossainLinear(AsPrinted, Model):
    """Lines of time over non-zeros a row, between which forecasts are linear in the rows.

    `as_printed` takes ordinary least squares. `most_` counts the Records of the format that had most.
    """

    name: ClassVar[str] = "hossain-linear"
    version: ClassVar[int] = 3
    devices: ClassVar[tuple[str, ...] | None] = (PROCESSOR,)
    covers: ClassVar[tuple[str, ...] | None] = FORMATS_OF_THE_PAPER
    suite: ClassVar[str | None] = "hossain"
    lines_: dict[str, RowLines]
    most_: int

    @classmethod
    def learns_from(cls, suite: str) -> bool:
        return suite == "hossain"

    def _fit(self, training: TrainingSet) -> None:
        measured = [(record, training.structure(record)) for record in training.records]
        points = [
            (name, shape.rows, shape.nnz / shape.rows, record.time_s)
            for name in FORMATS_OF_THE_PAPER
            for record, shape in measured
            if record.candidate.format == name
        ]
        self.most_ = max(Counter(name for name, *_ in points).values(), default=0)
        self.lines_ = RowLines.of_kinds(points, self.as_printed)

    def needed(self) -> str:
        return (
            f"random matrices of two numbers of rows, each with two numbers of non-zeros a row, of which "
            f"they name {self.most_}; add them by `sparsecast calibrate --suites hossain`"
        )

    def formats(self) -> list[str]:
        return list(self.lines_)

    def terms(self, candidate: Candidate, blocks: RowBlocks) -> dict[str, Floats]:
        """Return y1 and y2, the times on the lines L1 and L2, what is extrapolated, and the forecast."""
        rows = blocks.rows.astype(float)
        return self.lines_[candidate.format].terms(rows, blocks.nnz / np.maximum(rows, 1))
