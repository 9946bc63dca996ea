"""The linear model of Hossain and Saule for 2D.

Source: M. M. Hossain, E. Saule, "Performance Model of Iterated SpMV for Distributed System", section III.A:
for random matrices of one number of rows, a line of time over non-zeros per row; a forecast lies between the
lines of the next smaller and the next larger number of rows, linearly in the rows.

What the paper leaves open, and what is done here: r is n / p, the rows of a process's block; x is the
non-zeros a row of the whole matrix. Lines are of each number of ranks and format, through the random matrices
of the paper's suite alone. They are fitted to relative residuals and never fall; `as_printed` fits ordinary
least squares. Outside the lines it extrapolates, and the term `extrapolated` says by how much.
"""

from __future__ import annotations

from math import isqrt
from typing import ClassVar, Self

import numpy as np

from sparsecast.matrices.partitioning.distribution import Distribution
from sparsecast.models.clusters import CLUSTER_MODELS
from sparsecast.models.clusters.cluster_model import (
    ClusterForecast,
    ClusterModel,
    ClusterTraining,
    Question,
    memory_bytes,
)
from sparsecast.models.model import AsPrinted
from sparsecast.papers.hossain_saule.row_lines import RowLines
from sparsecast.papers.hossain_saule.table_one import FORMATS_OF_THE_PAPER
from sparsecast.records import Configuration

_Key = tuple[int, str]

#: The suite of random matrices, and what measures it on ranks.
SUITE = "hossain"
MEASURE = "`mpirun -n N sparsecast calibrate --ranks --suites hossain`"


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
