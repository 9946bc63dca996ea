"""Narrow storage: whether values and columns can be kept in fewer bytes without a loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from sparsecast.features import FEATURES
from sparsecast.features.analysis import MatrixSource
from sparsecast.features.feature_group import FeatureGroup
from sparsecast.features.structure import Structure
from sparsecast.features.sweep import extremes
from sparsecast.features.value_scan import MOST_DISTINCT, are_float32, distinct_values
from sparsecast.system.jit import njit
from sparsecast.system.parallel import equal_parts, in_parts

#: Consecutive rows, from a multiple of this number on, whose columns are counted from a base of their own.
GROUP_ROWS = 256

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
    #: Values that differ in their bits among the first MOST_COUNTED, counted up to MOST_DISTINCT.
    distinct: int
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
            parts = [equal_parts(-(-source.shape[0] // GROUP_ROWS), source.workers)]
            if source.ranges:  # the groups with entries of the sample
                spans = source.row_ranges
                parts = [np.array([first // GROUP_ROWS, -(-end // GROUP_ROWS)]) for first, end in spans]
            matrix = source.indptr, source.indices
            reach = max(int(found) for groups in parts for found in in_parts(_reach, matrix, groups))
        values = [source.data[:1]] if source.all_alike else source.values
        is_exact = all(are_float32(part, source.workers) for part in values)
        if source.ranges and (is_exact or source.all_alike or reach < NARROW_COLUMNS):
            source.unproven.add(cls.name)
        return cls(source.all_alike, is_exact, distinct_values(values[0]), reach)

    def contradiction(self, rows: int, cols: int, nnz: int) -> str | None:
        if not (nnz > 0) <= self.distinct <= min(nnz, MOST_DISTINCT):
            return f"the values are {self.distinct:,} different ones"
        if self.all_alike and self.distinct != 1:
            return f"all values are alike, and {self.distinct:,} of them differ"
        if not 0 <= self.row_group_reach <= min(max(cols - 1, 0), NARROW_COLUMNS):
            return f"a column is {self.row_group_reach:,} from its base"
        return None

    def summary(self) -> list[tuple[str, str]]:
        """Return what values and columns need, and what that saves of float64 with 32-bit columns."""
        spared = "of 12 bytes an entry need not be streamed"
        exact = f"; exact in float32: 4 {spared}" if self.float32_exact and self.distinct else ""
        alike = f"all alike: 8 {spared}"
        fits = self.row_group_reach < NARROW_COLUMNS
        return [
            ("values", alike if self.all_alike else f"{self.distinct} different ones or more{exact}"),
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


@njit(cache=True, nogil=True)
def _reach(indptr, indices, first_group, last_group):
    rows, reach = np.uint64(len(indptr) - 1), np.uint64(0)
    for group in range(first_group, last_group):
        row = group * np.uint64(GROUP_ROWS)
        start, stop = np.uint64(indptr[row]), np.uint64(indptr[min(row + np.uint64(GROUP_ROWS), rows)])
        if start == stop:
            continue
        least, greatest = extremes(indices, start, stop)
        reach = max(reach, greatest - least)
        if reach >= np.uint64(NARROW_COLUMNS):
            return NARROW_COLUMNS
    return np.int64(reach)
