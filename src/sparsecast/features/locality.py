"""Locality of x: how often a product reads another cache line of x, and how soon it comes back to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from sparsecast.features import FEATURES
from sparsecast.features.feature_group import FeatureGroup
from sparsecast.features.levels import X_REUSE_ELEMENTS
from sparsecast.features.source import MatrixSource


@FEATURES.register("locality")
@dataclass(frozen=True, slots=True)
class Locality(FeatureGroup):
    """Reads of x, in cache lines of X_LINE_COLUMNS entries.

    `line_changes` is the number of entries that read another line than the entry stored before them.
    `reuse_histogram` holds the shares of those by the number of line changes since the same line was last
    read: element k counts [2**k, 2**(k+1)); the last element counts first reads. All are 0 without entries.
    """

    name: ClassVar[str] = "locality"

    line_changes: int
    reuse_histogram: tuple[float, ...]

    @classmethod
    def compute(cls, source: MatrixSource) -> Self:
        """Return the features of a matrix; the histogram is estimated above 262,144 entries.

        The reads in one of up to 16 runs of 512 entries are looked up, against the history of all reads.
        """
        found = source.sweep
        return cls(found.line_changes, tuple((found.reuse / max(int(found.reuse.sum()), 1)).tolist()))

    def contradiction(self, rows: int, cols: int, nnz: int) -> str | None:
        """Return what is wrong with the number of line changes or their shares."""
        if not 0 <= self.line_changes <= nnz:
            return f"{self.line_changes:,} entries read another line of x"
        if len(self.reuse_histogram) != X_REUSE_ELEMENTS:
            return f"the reuse of x has {len(self.reuse_histogram)} shares, not {X_REUSE_ELEMENTS}"
        total = sum(self.reuse_histogram)
        if min(self.reuse_histogram) < 0 or abs(total - (self.line_changes > 0)) > 1e-6:
            return f"the shares of the reuse of x add up to {total:g}"
        return None
