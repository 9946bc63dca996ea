"""Row lengths: how many entries the rows have, and how many of the row ends are mispredicted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sparsecast.features import FEATURES
from sparsecast.features.feature_group import FeatureGroup
from sparsecast.features.levels import ROW_LENGTH_LEVELS
from sparsecast.features.source import MatrixSource


@FEATURES.register("row_lengths")
@dataclass(frozen=True, slots=True)
class RowLengths(FeatureGroup):
    """Statistics of the entries a row.

    Attributes
    ----------
    deviation : float
        Population standard deviation.
    mode : int
        Most frequent number of entries, the smallest of equals.
    changes : int or None
        Rows whose length differs from that of the row before; None where the order of the rows is not known.
    mispredicted : int or None
        Rows whose length is not the one that followed the same four lengths the last time: an estimate of
        the mispredicted ends of the row loop, from a table of 65,536 histories; None as `changes`.
    rows_at_least, entries_up_to : tuple of int
        For each level of ROW_LENGTH_LEVELS up to the first that is >= `max`: the rows with at least that
        many entries, and the sum over rows of min(length, level).
    """

    name: ClassVar[str] = "row_lengths"

    mean: float
    deviation: float
    mode: int
    min: int
    max: int
    empty_rows: int
    changes: int | None
    mispredicted: int | None
    rows_at_least: tuple[int, ...]
    entries_up_to: tuple[int, ...]

    @classmethod
    def compute(cls, source: MatrixSource) -> Self:
        """Return the features of a matrix, exactly."""
        found = source.rows
        statistics = row_length_statistics(found.lengths, found.counts)
        return cls(**statistics, changes=found.changes, mispredicted=found.mispredicted)

    def contradiction(self, rows: int, cols: int, nnz: int) -> str | None:
        """Return the first statement about row lengths that the others rule out."""
        levels = ROW_LENGTH_LEVELS[: len(self.rows_at_least)]
        expected = int(np.searchsorted(ROW_LENGTH_LEVELS, self.max)) + 1
        at_least, up_to = self.rows_at_least, self.entries_up_to
        checks = {
            f"row lengths go from {self.min} to {self.max}": 0 <= self.min <= self.max,
            f"the mode {self.mode} is outside of {self.min} to {self.max}": (
                self.min <= self.mode <= self.max or not rows
            ),
            f"{len(at_least)} and {len(up_to)} levels stand for rows of up to {self.max} entries": (
                len(at_least) == len(up_to) == expected
            ),
            f"{rows:,} rows have a mean of {self.mean:g} entries": (
                abs(self.mean * rows - nnz) <= 1e-9 * max(nnz, 1)
            ),
            f"the deviation of the row lengths is {self.deviation:g}": (
                0 <= self.deviation <= max(self.max, 1) * (1 + 1e-9)
            ),
            f"{self.mispredicted} rows are mispredicted": 0 <= (self.mispredicted or 0) <= rows,
            f"{self.changes} rows have another length than the one before": 0 <= (self.changes or 0) <= rows,
            f"{self.empty_rows:,} rows are empty": 0 <= self.empty_rows <= rows,
            f"{at_least[0] if at_least else 0:,} rows have at least 0 entries": (
                bool(at_least) and at_least[0] == rows
            ),
            f"{self.empty_rows:,} rows are empty and {at_least[1] if len(at_least) > 1 else 0:,} are not": (
                self.empty_rows == rows - (at_least[1] if len(at_least) > 1 else 0)
            ),
            f"no row has {self.max:,} entries": self.max == 0 or (len(at_least) > 1 and at_least[-2] > 0),
            "fewer than 0 rows have at least so many entries": not at_least or at_least[-1] >= 0,
            "the rows with at least so many entries grow with the number": all(np.diff(at_least) <= 0),
            f"the rows have {up_to[-1] if up_to else 0:,} entries together": bool(up_to) and up_to[-1] == nnz,
            "the entries up to a level are no sum over rows": (
                len(at_least) == len(up_to) and _adds_up(levels, at_least, up_to)
            ),
        }
        return next((text for text, holds in checks.items() if not holds), None)


def _adds_up(levels: tuple[int, ...], at_least: tuple[int, ...], up_to: tuple[int, ...]) -> bool:
    """Tell whether each step of `up_to` lies between what the rows above and those at its start can add."""
    if not up_to or up_to[0] != 0:
        return False
    steps, gains = np.diff(levels), np.diff(up_to)
    most, least = np.array(at_least[:-1]), np.array(at_least[1:])
    # A row that reaches the lower level only adds at least nothing and less than the step.
    return bool(np.all(gains >= least * steps) and np.all(gains <= most * steps))


def row_length_statistics(lengths: NDArray[np.int64], counts: NDArray[np.int64]) -> dict[str, Any]:
    """Return those features that do not depend on the order of the rows.

    `lengths` are those that rows have, ascending, each once; `counts` the number of rows of each.
    """
    rows, nnz = int(counts.sum()), int(counts @ lengths)
    mean = nnz / max(rows, 1)
    longest = int(lengths.max(initial=0))
    levels = np.array(ROW_LENGTH_LEVELS[: int(np.searchsorted(ROW_LENGTH_LEVELS, longest)) + 1])
    shorter = np.searchsorted(lengths, levels)
    rows_below = np.concatenate(([0], np.cumsum(counts)))[shorter]
    entries_below = np.concatenate(([0], np.cumsum(counts * lengths)))[shorter]
    rows_at_least = rows - rows_below
    return {
        "mean": mean,
        "deviation": math.sqrt(float(np.sum(counts * (lengths - mean) ** 2)) / max(rows, 1)),
        "mode": int(lengths[np.argmax(counts)]) if rows else 0,
        "min": int(lengths[0]) if rows else 0,
        "max": longest,
        "empty_rows": int(counts[lengths == 0].sum()),
        "rows_at_least": tuple(rows_at_least.tolist()),
        "entries_up_to": tuple((entries_below + rows_at_least * levels).tolist()),
    }
