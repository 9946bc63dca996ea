"""Narrow storage: whether values and columns can be kept in fewer bytes without a loss."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, ClassVar, Self

import numpy as np

from sparsecast.features import FEATURES
from sparsecast.features.analysis import MatrixSource
from sparsecast.features.feature_group import FeatureGroup
from sparsecast.features.structure import Structure
from sparsecast.features.value_scan import are_float32
from sparsecast.system.parallel import equal_parts, on_threads

#: Consecutive rows, from a multiple of this number on, whose columns are counted from a base of their own.
GROUP_ROWS = 256

#: Groups whose columns are read at once: they stay in a cache between the two passes over them.
_GROUPS_AT_ONCE = 64

#: Columns that 16 bits tell apart.
NARROW_COLUMNS = 2**16


@FEATURES.register("narrow_storage")
@dataclass(frozen=True, slots=True)
class NarrowStorage(FeatureGroup):
    """What values and columns need."""

    name: ClassVar[str] = "narrow_storage"
    version: ClassVar[int] = 2

    all_alike: bool  # whether all stored values have the same bits; False without any
    float32_exact: bool  # whether every value is real and, as float64, a value of float32 other than NaN
    #: Greatest distance of a column from the base of its row, counted up to NARROW_COLUMNS. The base is the
    #: least column of each GROUP_ROWS rows; it is 0 where no more than NARROW_COLUMNS columns are, and the
    #: reach then one less than these.
    row_group_reach: int

    @classmethod
    def compute(cls, source: MatrixSource) -> Self:
        """Return the features of a matrix; those of a sample hold for what it read."""
        cols = source.shape[1]
        reach = max(cols - 1, 0)
        if cols > NARROW_COLUMNS:
            groups = [equal_parts(-(-source.shape[0] // GROUP_ROWS), source.workers)]
            if source.ranges:  # those with entries of the sample
                spans = source.row_ranges
                groups = [np.array([row // GROUP_ROWS, -(-end // GROUP_ROWS)]) for row, end in spans]
            reaches = (on_threads(partial(_reach, source), part) for part in groups)
            reach = min(max(chain.from_iterable(reaches)), NARROW_COLUMNS)
        values = [source.data[:1]] if source.all_alike else source.values
        is_exact = all(are_float32(part, source.workers) for part in values)
        if source.ranges and (is_exact or source.all_alike or reach < NARROW_COLUMNS):
            source.unproven.add(cls.name)
        return cls(source.all_alike, is_exact, reach)

    def contradiction(self, rows: int, cols: int, nnz: int) -> str | None:
        return self.first_wrong(
            all_alike=nnz or not self.all_alike,
            row_group_reach=0 <= self.row_group_reach <= min(max(cols - 1, 0), NARROW_COLUMNS),
        )

    def summary(self) -> list[tuple[str, str]]:
        """Return what values and columns need, and what that saves of float64 with 32-bit columns."""
        spared = "of 12 bytes an entry need not be streamed"
        exact = f"exact in float32: 4 {spared}" if self.float32_exact else "not exact in float32"
        fits = self.row_group_reach < NARROW_COLUMNS
        return [
            ("values", f"all alike: 8 {spared}" if self.all_alike else exact),
            ("columns", f"16 bits suffice: 2 {spared}" if fits else "16 bits do not suffice"),
        ]


def narrowest(structure: Structure) -> dict[str, Any]:
    """Return the parameters `values` and `columns` of the narrowest storage that loses nothing of a matrix.

    ``values`` is ``"one"``, or ``"float32"`` of float64; ``columns`` is 16. What does not hold, or is not
    known to hold, is absent.
    """
    if not structure.nnz or structure.lacks(["narrow_storage"]):
        return {}
    found, parameters = structure.narrow_storage, dict[str, Any]()
    if found.all_alike or found.float32_exact:
        parameters["values"] = "one" if found.all_alike else "float32"
    if found.row_group_reach < NARROW_COLUMNS:
        parameters["columns"] = 16
    return parameters


def _reach(source: MatrixSource, first_group: int, last_group: int) -> int:
    """Return the greatest distance between columns within a group of rows, or one that is too great."""
    reach = 0
    for group in range(first_group, last_group, _GROUPS_AT_ONCE):
        groups = np.arange(group, min(group + _GROUPS_AT_ONCE, last_group) + 1)
        bounds = source.indptr[np.minimum(groups * GROUP_ROWS, source.shape[0])]
        starts = bounds[:-1][np.diff(bounds) > 0]  # of an empty group, `reduceat` would give the next entry
        if len(starts):
            columns, starts = source.indices[bounds[0] : bounds[-1]], starts - bounds[0]
            distances = np.maximum.reduceat(columns, starts) - np.minimum.reduceat(columns, starts)
            reach = max(reach, int(distances.max()))
        if reach >= NARROW_COLUMNS:
            break
    return reach
