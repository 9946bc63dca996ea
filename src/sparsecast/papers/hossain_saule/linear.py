"""The linear models of Hossain and Saule: of one process, and of 2D on many ranks.

Source: M. M. Hossain, E. Saule, "Performance Model of Iterated SpMV for Distributed System", section III.A.
For random matrices of one number of rows, the time is a straight line over the non-zeros a row, measured at
1, 2, 4 .. 128. A matrix with r rows is forecast from the lines L1 and L2 of the next lower and the next
higher number of rows, linear in r.

What the paper leaves open, and what is done here:

- Its processes communicate. One process does not: the time is that of the local product, in CSR and COO.
- On many ranks r is n / p, the rows of a process's block; x is the non-zeros a row of the whole matrix. Lines
  are of each number of ranks and format, through the random matrices of the paper's suite alone.
- Beyond the rows or the non-zeros a row that were measured, the nearest two lines go on, and the term
  `extrapolated` says how many seconds come from there.
- The lines are fitted to relative residuals and never fall; `as_printed` fits ordinary least squares. Where
  they give no time above 0, the least measured one takes its place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from math import isqrt
from typing import ClassVar, Self, TypeVar

import numpy as np

from sparsecast.features.row_blocks import RowBlocks
from sparsecast.machines.machine import PROCESSOR, Machine
from sparsecast.matrices.partitioning.distribution import Distribution
from sparsecast.matrices.suites import SUITES, Suite, SuiteMatrix, suite_matrix
from sparsecast.models import MODELS
from sparsecast.models.clusters import CLUSTER_MODELS
from sparsecast.models.clusters.cluster_model import (
    ClusterForecast,
    ClusterModel,
    ClusterTraining,
    Question,
    memory_bytes,
)
from sparsecast.models.fitting import Floats, Line, above_zero
from sparsecast.models.model import AsPrinted, Model
from sparsecast.models.training import TrainingSet
from sparsecast.papers.hossain_saule import FORMATS_OF_THE_PAPER
from sparsecast.records import Candidate, Configuration
from sparsecast.system.tabular import grouped

K = TypeVar("K", bound=Hashable)

_Key = tuple[int, str]

#: The suite of random matrices, and what measures it on ranks.
SUITE = "hossain"
MEASURE = "`mpirun -n N sparsecast calibrate --ranks --suites hossain`"

#: Section III.A: non-zeros a row of their random matrices. They give no list of rows; these go from the first
#: cache to memory.
NNZ_PER_ROW = (1, 2, 4, 8, 16, 32, 64, 128)
ROWS = (1_000, 4_000, 16_000, 64_000, 256_000, 1_000_000)


@SUITES.register("hossain")
class Hossain(Suite):
    """Rows of one length, uniform columns: measured on request, in the paper's two formats.

    The smallest come first.
    """

    name = SUITE

    def whole(self, machine: Machine, threads: int) -> list[SuiteMatrix]:
        if machine.gpu is not None:
            return []
        points = sorted((rows * length, rows, length) for rows in ROWS for length in NNZ_PER_ROW)
        return [
            suite_matrix("row lengths", rows, length, "fixed", suite=self.name, formats=("csr", "coo"))
            for _, rows, length in points
        ]


@dataclass(frozen=True)
class RowLines:
    """A line of time over non-zeros per row for each number of rows; between them it is linear in the rows.

    Two `lines` at least, by rows, the fewest first, fitted between the ends of `lengths`. `least_s`, the
    least time that was measured, takes the place of a forecast that is not above 0.
    """

    lines: dict[float, Line]
    lengths: tuple[float, float]
    least_s: float

    @classmethod
    def of_kinds(cls, points: Iterable[tuple[K, float, float, float]], as_printed: bool) -> dict[K, RowLines]:
        """Return the lines of each kind with two: `points` are kind, rows, non-zeros per row and seconds.

        A line is fitted to each number of rows that was measured with two lengths.
        """
        fit = Line.ordinary if as_printed else Line.through
        found: dict[K, RowLines] = {}
        for kind, own in grouped(points, lambda point: point[0]).items():
            rows, lengths, time_s = np.array([point[1:] for point in own]).T
            lines = {}
            for count in np.unique(rows).tolist():
                here = rows == count
                if len(np.unique(lengths[here])) > 1:
                    lines[count] = fit(lengths[here], time_s[here])
            if len(lines) > 1:
                on_lines = lengths[np.isin(rows, list(lines))]
                ends = float(on_lines.min()), float(on_lines.max())
                found[kind] = cls(lines, ends, float(time_s.min()))
        return found

    def terms(self, r: Floats, x: Floats) -> dict[str, Floats]:
        """Return y1 and y2, the times on the next two lines, what is extrapolated, and the forecast.

        `r` are rows, `x` non-zeros per row.
        """
        y1, y2, y = self._between(r, x)
        rows = list(self.lines)
        within = self._between(np.clip(r, rows[0], rows[-1]), np.clip(x, *self.lengths))[2]
        return {"y1": y1, "y2": y2, "extrapolated": y - within, "time_s": above_zero(y, self.least_s)}

    def _between(self, r: Floats, x: Floats) -> tuple[Floats, Floats, Floats]:
        rows = np.array(list(self.lines))
        m, c = np.array([[line.slope, line.intercept] for line in self.lines.values()]).T
        upper = np.clip(np.searchsorted(rows, r), 1, len(rows) - 1)
        lower = upper - 1
        y1, y2 = m[lower] * x + c[lower], m[upper] * x + c[upper]  # y1 = m1 x + c1, y2 = m2 x + c2
        return y1, y2, y1 + (y2 - y1) * (r - rows[lower]) / (rows[upper] - rows[lower])


@MODELS.register("hossain-linear")
class HossainLinear(AsPrinted, Model):
    """Lines of time over non-zeros a row, between which forecasts are linear in the rows.

    `as_printed` takes ordinary least squares. `most_` counts the Records of the format that had most.
    """

    name: ClassVar[str] = "hossain-linear"
    version: ClassVar[int] = 3
    devices: ClassVar[tuple[str, ...] | None] = (PROCESSOR,)
    covers: ClassVar[tuple[str, ...] | None] = FORMATS_OF_THE_PAPER
    suite: ClassVar[str | None] = SUITE
    lines_: dict[str, RowLines]
    most_: int

    @classmethod
    def learns_from(cls, suite: str) -> bool:
        return suite == SUITE

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


@CLUSTER_MODELS.register("hossain-linear")
class HossainLinearCluster(AsPrinted, ClusterModel):
    """Lines of time over non-zeros a row, between which forecasts are linear in the rows.

    `as_printed` takes ordinary least squares. `lines_` are by ranks and format, of rows of a block.
    """

    name: ClassVar[str] = "hossain-linear"
    algorithms: ClassVar[tuple[str, ...] | None] = ("2d",)
    covers: ClassVar[tuple[str, ...] | None] = FORMATS_OF_THE_PAPER

    def fit(self, training: ClusterTraining) -> Self:
        points = (
            (_key(record.configuration), *_place(question.distribution), record.time_s)
            for record, question in self._learnable(training)
            if record.suite == SUITE
        )
        self.lines_ = RowLines.of_kinds(points, self.as_printed)
        if not self.lines_:
            raise self.insufficient(
                "2d products of random matrices of two numbers of rows, each with two numbers of non-zeros a "
                f"row; measure them by {MEASURE}"
            )
        return self

    def lacking(self, configuration: Configuration, question: Question) -> str | None:
        outside = super().lacking(configuration, question)
        if outside is not None or _key(configuration) in self.lines_:
            return outside
        return (
            f"the {self.name} model expected random matrices measured in {configuration.format} on "
            f"{configuration.ranks} ranks; measure them by {MEASURE}"
        )

    def _forecast(self, configuration: Configuration, question: Question) -> ClusterForecast:
        place = (np.array([value]) for value in _place(question.distribution))
        terms = self.lines_[_key(configuration)].terms(*place)
        shown = (("extrapolated", float(terms["extrapolated"][0])),)
        memory = memory_bytes(configuration, question)
        return ClusterForecast(configuration, float(terms["time_s"][0]), memory, shown)


def _place(distribution: Distribution) -> tuple[float, float]:
    """Return the rows of a block, and the non-zeros a row of the whole matrix."""
    rows = distribution.shape[0]
    return rows / isqrt(distribution.ranks), float(distribution.nnz.sum()) / max(rows, 1)


def _key(configuration: Configuration) -> _Key:
    return configuration.ranks, configuration.format
