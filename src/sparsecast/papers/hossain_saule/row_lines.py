"""The lines of Hossain and Saule, section III.A: times of random matrices over non-zeros per row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sparsecast.models.fitting import Floats, Line, above_zero


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
    def fitted(
        cls,
        rows: Floats,
        lengths: Floats,
        time_s: Floats,
        fit: Callable[[Floats, Floats], Line] = Line.through,
    ) -> RowLines | None:
        """Fit a line to each number of rows that was measured with two lengths; None without two lines."""
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
