"""What is unusual about a matrix among others: its features, each against the range of theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from sparsecast.features.structure import Structure
from sparsecast.results.reports import Rarity

#: A value is unusual where no more than this share of the others lie beyond it, on its side.
_FEW = 0.05

#: From so many others on, it can be told what few of them are.
_LEAST_OTHERS = 10

#: What is compared: numbers above 0 that do not grow with the matrix, but for its size. The names are those
#: that a sentence can have as its subject.
TRAITS: dict[str, Callable[[Structure], float]] = {
    "non-zeros": lambda structure: structure.nnz,
    "columns, the entries of x": lambda structure: structure.cols,
    "mean row length": lambda structure: structure.row_lengths.mean,
    "deviation of the row lengths over their mean": lambda structure: (
        structure.row_lengths.deviation / (structure.row_lengths.mean or 1.0)
    ),
    "longest row over the mean": lambda structure: (
        structure.row_lengths.max / (structure.row_lengths.mean or 1.0)
    ),
    "share of empty rows": lambda structure: structure.row_lengths.empty_rows / max(structure.rows, 1),
    "share of mispredicted rows": lambda structure: (
        (structure.row_lengths.mispredicted or 0) / max(structure.rows, 1)
    ),
    "share of entries that read another line of x": lambda structure: (
        structure.locality.line_changes / max(structure.nnz, 1)
    ),
    "share of x that a row can reach (half-bandwidth)": lambda structure: (
        structure.bands.half_bandwidth / max(structure.cols, 1)
    ),
    "values stored in 2x2 blocks for a non-zero": lambda structure: structure.blocks.fill[0],
    "columns over rows": lambda structure: structure.cols / max(structure.rows, 1),
}


#: Groups that the traits are read from.
_GROUPS = ("row_lengths", "locality", "bands", "blocks")


def rarities(structure: Structure, others: Iterable[Structure]) -> tuple[Rarity, ...]:
    """Return in what a matrix is unusual among others: what lies farthest outside of their range first.

    Nothing is unusual among fewer than _LEAST_OTHERS, nor where a feature group is not known.
    """
    compared = [other for other in others if not other.lacks(_GROUPS)]
    if structure.lacks(_GROUPS) or len(compared) < _LEAST_OTHERS:
        return ()
    rare = []
    for trait, read in TRAITS.items():
        value, values = read(structure), np.array([read(other) for other in compared])
        larger, smaller = int((values >= value).sum()), int((values <= value).sum())
        if min(larger, smaller) <= _FEW * len(values):
            is_large = larger < smaller
            end = float(values.max() if is_large else values.min())
            rare.append(Rarity(trait, value, end, is_large, min(larger, smaller), len(values)))
    return tuple(sorted(rare, key=lambda rarity: (-rarity.distance, rarity.beyond)))
