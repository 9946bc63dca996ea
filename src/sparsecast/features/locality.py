"""Locality of x: how often a product changes the cache line of x, and how soon it returns to a line."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sparsecast.features import FEATURES
from sparsecast.features.analysis import MatrixSource
from sparsecast.features.feature_group import FeatureGroup
from sparsecast.features.sweep import X_LINE_COLUMNS, X_REUSE_ELEMENTS, Sweep


@FEATURES.register("locality")
@dataclass(frozen=True, slots=True)
class Locality(FeatureGroup):
    """Reads of x, in cache lines of X_LINE_COLUMNS entries.

    `line_changes` is the number of entries that read another line than the entry stored before them.
    `reuse_histogram` holds their shares by the number of line changes since the last read of the same line:
    element k counts [2**k, 2**(k+1)); the last element counts first reads. All are 0 without entries.
    """

    name: ClassVar[str] = "locality"

    line_changes: int
    reuse_histogram: tuple[float, ...]

    @classmethod
    def compute(cls, source: MatrixSource) -> Self:
        """Return the features of a matrix; the histogram is estimated above 262,144 entries.

        The reads in one of up to 16 runs of 512 entries are compared with the history of all reads. In a
        sample both are estimated, and reuse beyond its ranges by `sampled_reuse`.
        """
        sweep = source.sweep
        if source.ranges:
            changes = round(sweep.line_changes * source.nnz / sweep.entries)
            return cls(changes, tuple(sampled_reuse(sweep, changes, source.shape).tolist()))
        return cls(sweep.line_changes, tuple((sweep.reuse / max(int(sweep.reuse.sum()), 1)).tolist()))

    def contradiction(self, rows: int, cols: int, nnz: int) -> str | None:
        shares, total = self.reuse_histogram, float(self.line_changes > 0)
        return self.first_wrong(
            line_changes=0 <= self.line_changes <= nnz,
            reuse_histogram=(
                len(shares) == X_REUSE_ELEMENTS and min(shares) >= 0 and abs(sum(shares) - total) <= 1e-6
            ),
        )


def sampled_reuse(sample: Sweep, changes: int, shape: tuple[int, int]) -> NDArray[np.float64]:
    """Return the shares of the reuse histogram of a matrix, from a sample.

    The first read of a line in a range is a censored observation: the line was last read before the range.
    The share of each octave follows as in a life table (Kaplan and Meier 1958). Beyond the ranges, the chance
    to return within a change is that of the last octaves. As many reads as there are lines are first reads.
    The others return within the half-bandwidth: most columns have an entry on the diagonal, and none farther
    away.

    `changes` are the line changes of the whole matrix, of this `shape`. The shares, an array of shape
    (X_REUSE_ELEMENTS,), have the sum 1, or 0 without changes.
    """
    shares = np.zeros(X_REUSE_ELEMENTS)
    if not changes:
        return shares
    lines = -(-shape[1] // X_LINE_COLUMNS)
    # The number of lines read, if the reads were spread evenly.
    first_reads = -lines * math.expm1(-changes / lines) / changes
    remaining, rates = 1.0, [0.0, 0.0, 0.0]
    # For each octave within the ranges, the share of the remaining lines that return in it.
    seen, unseen = sample.reuse[:-1], sample.unseen[:-1]
    at_risk = np.cumsum((seen + unseen)[::-1])[::-1]
    octaves = max(int(np.count_nonzero(at_risk)) - 1, 0)  # the last one reaches beyond the ranges
    # Those whose range begins within the octave were exposed to half of it.
    exposed = np.maximum(at_risk - unseen / 2, 1.0)[:octaves]
    for octave, returned in enumerate(np.minimum(seen[:octaves] / exposed, 1.0).tolist()):
        shares[octave] = min(remaining * returned, max(remaining - first_reads, 0.0))
        # The chance to return within a change, for lines that return at all.
        coming = max(remaining - first_reads, shares[octave], 1e-12)
        rates.append(-math.log1p(-min(shares[octave] / coming, 1 - 1e-12)) / 2.0**octave)
        remaining -= shares[octave]
    farthest = max(sample.half_bandwidth / shape[0] * changes, 2.0**octaves)
    last = min(int(farthest).bit_length() - 1, X_REUSE_ELEMENTS - 2)
    trend = min(1.0, math.sqrt(rates[-1] / rates[-3])) if rates[-3] else 1.0
    for octave in range(octaves, last):
        rates.append(rates[-1] * trend)
        shares[octave] = -max(remaining - first_reads, 0.0) * math.expm1(-rates[-1] * 2.0**octave)
        remaining -= shares[octave]
    shares[-1] = min(remaining, first_reads)
    shares[last] += remaining - shares[-1]
    return shares
