"""The lines of Hossain and Saule, section III.A: times of random matrices over non-zeros per row."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from sparsecast.models.fitting import Floats, Line, above_zero
from sparsecast.system.tabular import grouped

K = TypeVar("K", bound=Hashable)


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
        """Return the lines of each kind with two: `points` are kind, rows, non-zeros per row and seconds."""
        kinds = grouped(points, lambda point: point[0])
        lines = {kind: cls._fitted(np.array([p[1:] for p in own]), as_printed) for kind, own in kinds.items()}
        return {kind: of_kind for kind, of_kind in lines.items() if of_kind is not None}

    @classmethod
    def _fitted(cls, points: Floats, as_printed: bool) -> RowLines | None:
        """Fit a line to each number of rows that was measured with two lengths; None without two lines."""
        rows, lengths, time_s = points.T
        fit = Line.ordinary if as_printed else Line.through
        of_rows = {count: rows == count for count in np.unique(rows).tolist()}
        lines = {
            count: fit(lengths[here], time_s[here])
            for count, here in of_rows.items()
            if len(np.unique(lengths[here])) > 1
        }
        if len(lines) < 2:
            return None
        on_lines = lengths[np.isin(rows, list(lines))]
        return cls(lines, (float(on_lines.min()), float(on_lines.max())), float(time_s.min()))

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
