"""The linear model of Hossain and Saule for 2D.

Source: M. M. Hossain, E. Saule, "Performance Model of Iterated SpMV for Distributed System", section III.A:
for random matrices of so many rows, a line of time over non-zeros a row; a forecast lies between the lines
of the next smaller and the next larger number of rows, linearly in the rows.

What the paper leaves open, and what is done here: r is n / p, the rows of a process's block; x is the
non-zeros a row of the whole matrix. Lines are of each number of ranks and format, and wherever matrices with
the same r and two values of x were measured. Outside the lines it extrapolates, and the term `extrapolated`
says by how much.
"""

from __future__ import annotations

from collections.abc import Sequence
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
from sparsecast.models.fitting import Line
from sparsecast.papers.hossain_saule.models.hossain_linear import FORMATS_OF_THE_PAPER
from sparsecast.records import Configuration

_Key = tuple[int, str]


@CLUSTER_MODELS.register("hossain-linear")
class HossainLinearCluster(ClusterModel):
    """Lines of time over non-zeros a row, between which forecasts are linear in the rows.

    Attributes
    ----------
    lines_ : dict of (int, str) to dict of float to Line
        By ranks and format, the line of each number of rows of a block, the fewest rows first.
    least_s_ : dict of (int, str) to float
        The least time that was measured: no forecast is below it where lines cross zero.
    """

    name: ClassVar[str] = "hossain-linear"
    algorithms: ClassVar[tuple[str, ...] | None] = ("2d",)
    formats: ClassVar[tuple[str, ...] | None] = FORMATS_OF_THE_PAPER

    def fit(self, training: ClusterTraining) -> Self:
        """Learn from DistributedRecords of 2D alone."""
        points: dict[_Key, dict[float, list[tuple[float, float]]]] = {}
        for record, question in self._learnable(training):
            r, x = _place(question.distribution)
            points.setdefault(_key(record.configuration), {}).setdefault(r, []).append((x, record.time_s))
        self.lines_: dict[_Key, dict[float, Line]] = {}
        self.least_s_: dict[_Key, float] = {}
        for key, by_rows in points.items():
            lines = {r: _line(own) for r, own in sorted(by_rows.items()) if len({x for x, _ in own}) > 1}
            if len(lines) > 1:
                self.lines_[key] = lines
                self.least_s_[key] = min(time_s for own in by_rows.values() for _, time_s in own)
        if not self.lines_:
            raise self.insufficient(
                "2d products of random matrices of two numbers of rows, each with two numbers of non-zeros a "
                "row; measure them by `mpirun -n N sparsecast measure MATRIX --algorithm 2d`"
            )
        return self

    def lacking(self, configuration: Configuration, question: Question) -> str | None:
        """Return that no lines of that number of ranks were measured."""
        outside = super().lacking(configuration, question)
        if outside is not None or _key(configuration) in self.lines_:
            return outside
        return (
            f"the {self.name} model expected random matrices measured in {configuration.format} on "
            f"{configuration.ranks} ranks; measure them"
        )

    def _forecast(self, configuration: Configuration, question: Question) -> ClusterForecast:
        """Return a forecast that does not tell communication from computation."""
        key, (r, x) = _key(configuration), _place(question.distribution)
        time_s = self._between(key, r, x)
        within = float(np.clip(r, min(self.lines_[key]), max(self.lines_[key])))
        terms = (("extrapolated", time_s - self._between(key, within, x)),)
        time_s = time_s if time_s > 0 else self.least_s_[key]
        memory = memory_bytes(configuration, question)
        return ClusterForecast(configuration, time_s, None, None, None, None, memory, terms)

    def _between(self, key: _Key, r: float, x: float) -> float:
        """Return y1 + (y2 - y1) (r - r1) / (r2 - r1)."""
        lines = self.lines_[key]
        rows = list(lines)
        upper = int(np.clip(np.searchsorted(rows, r), 1, len(rows) - 1))
        r1, r2 = rows[upper - 1], rows[upper]
        y1, y2 = (lines[each].slope * x + lines[each].intercept for each in (r1, r2))
        return y1 + (y2 - y1) * (r - r1) / (r2 - r1)


def _line(points: Sequence[tuple[float, float]]) -> Line:
    x, time_s = np.array(points).T
    return Line.through(x, time_s)


def _place(found: Distribution) -> tuple[float, float]:
    """Return the rows of a block, and the non-zeros a row of the whole matrix."""
    rows = found.shape[0]
    return rows / isqrt(found.ranks), float(found.nnz.sum()) / max(rows, 1)


def _key(configuration: Configuration) -> _Key:
    return configuration.ranks, configuration.format
